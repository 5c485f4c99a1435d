// The input is a control message, taken by both sides of a handshake in every state: nothing gets
// through without the secret, and what is read can be written again.
#include <algorithm>

#include "kernels/base/check.hpp"
#include "runtime/transport/handshake.hpp"
#include "tests/support/fuzz_driver.hpp"

namespace {

using namespace cedar;
using namespace cedar::transport;

std::string input_of(const control_message& message) {
  const std::vector<std::byte> bytes = pack(message);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

namespace cedar::test {

fuzz_material fuzz_corpus() {
  fuzz_material out;
  for (std::uint8_t kind = 1; kind <= 8; ++kind) {
    control_message message;
    message.kind = static_cast<control_kind>(kind);
    message.from = {node_id{1}, "a"};
    message.wanted = node_id{2};
    message.text = "text";
    out.seeds.push_back(input_of(message));
  }
  return out;
}

}  // namespace cedar::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto message = unpack(bytes);
  if (!message) return 0;
  if (message->version == transport_version) {
    const std::vector<std::byte> again = pack(*message);
    CEDAR_ASSERT(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()),
                 "read and written differ");
  }
  const shared_secret secret(secret_bytes_min, std::byte{1});
  handshake acceptor = handshake::accept({node_id{2}, "b"}, secret);
  for (int i = 0; i < 2; ++i) {
    CEDAR_ASSERT(acceptor.receive(*message).now != handshake::state::established, "let in");
  }
  handshake initiator = handshake::initiate({node_id{1}, "a"}, secret, node_id{2});
  for (int i = 0; i < 2; ++i) {
    CEDAR_ASSERT(initiator.receive(*message).now != handshake::state::established, "let in");
  }
  CEDAR_ASSERT(!acceptor.peer_proven() && !initiator.peer_proven(), "proven without the secret");
  return 0;
}
