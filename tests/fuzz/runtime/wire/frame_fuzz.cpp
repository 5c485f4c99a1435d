// The input is a frame: length of the header segment (two bytes), the segment, the payload. The
// target adds the right checksum, or nothing would get past it. Whatever is accepted must
// contradict itself nowhere: it can be encoded again, and comes back the same.
#include <cstring>

#include "kernels/base/check.hpp"
#include "runtime/wire/checksum.hpp"
#include "runtime/wire/decode.hpp"
#include "runtime/wire/encode.hpp"
#include "tests/support/fuzz_driver.hpp"
#include "tests/unit/runtime/wire/samples.hpp"

namespace {

using namespace cedar;

constexpr std::size_t checksum_bytes = 8;

std::string input_of(const flow::message& message) {
  const flow::frame frame = wire::encode({edge_id{1}, 2, 3}, message);
  const std::size_t segment_bytes = frame.header.size() - checksum_bytes;
  const flow::received_frame whole = wire::test::cross(frame);
  std::string input;
  input += static_cast<char>(segment_bytes & 0xff);
  input += static_cast<char>(segment_bytes >> 8);
  input.append(reinterpret_cast<const char*>(whole.header.data()), segment_bytes);
  input.append(reinterpret_cast<const char*>(whole.payload.data()), whole.payload.bytes());
  return input;
}

flow::received_frame frame_of(const std::uint8_t* data, std::size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const std::size_t said = std::size_t{data[0]} | (std::size_t{data[1]} << 8);
  const std::size_t segment_bytes = std::min(said, size - 2);
  const std::size_t payload_bytes = size - 2 - segment_bytes;
  flow::received_frame frame{std::vector<std::byte>(segment_bytes + checksum_bytes),
                             kernels::buffer(payload_bytes)};
  if (segment_bytes > 0) std::memcpy(frame.header.data(), bytes + 2, segment_bytes);
  if (payload_bytes > 0) {
    std::memcpy(frame.payload.data(), bytes + 2 + segment_bytes, payload_bytes);
  }
  const std::uint64_t checksum =
      wire::checksum_of({std::span(frame.header).first(segment_bytes), frame.payload.span()});
  std::memcpy(frame.header.data() + segment_bytes, &checksum, sizeof checksum);
  return frame;
}

}  // namespace

namespace cedar::test {

fuzz_material fuzz_corpus() {
  fuzz_material out;
  out.seeds = {
      input_of(wire::test::sample_step_table()),   input_of(wire::test::sample_proposal(false)),
      input_of(wire::test::sample_proposal(true)), input_of(wire::test::sample_verdict()),
      input_of(wire::test::sample_tap()),          input_of(flow::credit{epoch_id{1}, 2, 3}),
      input_of(wire::test::sample_draft_orders()), input_of(wire::test::sample_draft_answers()),
      input_of(wire::test::sample_image())};
  for (const auto kind :
       {flow::row_kind::embedded, flow::row_kind::activation, flow::row_kind::engram_rows,
        flow::row_kind::head_input, flow::row_kind::expert_rows, flow::row_kind::expert_outputs,
        flow::row_kind::pool_query, flow::row_kind::pool_choice}) {
    out.seeds.push_back(input_of(wire::test::sample_row_block(kind)));
  }
  out.words = {std::string(8, '\0'), std::string(4, '\xff'), std::string("\x01\x00\x00\x00", 4)};
  return out;
}

}  // namespace cedar::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto first = wire::decode(frame_of(data, size));
  if (!first) {
    CEDAR_ASSERT(first.error().message.starts_with("frame: "), first.error().message);
    return 0;
  }
  const flow::frame again = wire::encode(first->envelope, first->message);
  CEDAR_ASSERT(again.payload_bytes() == flow::credit_bytes(first->message), "bytes counted");
  const auto second = wire::decode(wire::test::cross(again));
  CEDAR_ASSERT(second.has_value(), "what was accepted once is not accepted again");
  const flow::frame third = wire::encode(second->envelope, second->message);
  CEDAR_ASSERT(third.header == again.header && third.lists == again.lists,
               "two encodings of one message differ");
  return 0;
}
