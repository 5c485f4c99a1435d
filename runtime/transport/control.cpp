#include "runtime/transport/control.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/base/check.hpp"
#include "runtime/transport/options.hpp"

namespace cedar::transport {

namespace {

static_assert(std::endian::native == std::endian::little,
              "control messages are copied as they lie");

/// "cedr": what else may knock at an open port is told apart at once.
constexpr std::uint32_t magic = 0x72646563;

class writer {
 public:
  template <class Value>
  void put(const Value& value) {
    put_bytes(&value, sizeof value);
  }
  void put_text(const std::string& text, std::size_t bytes_max) {
    const std::size_t bytes = std::min(text.size(), bytes_max);
    put(static_cast<std::uint16_t>(bytes));
    put_bytes(text.data(), bytes);
  }
  std::vector<std::byte> take() const { return {bytes_.begin(), bytes_.begin() + used_}; }

 private:
  void put_bytes(const void* from, std::size_t count) {
    CEDAR_ASSERT(count <= bytes_.size() - used_, "control messages are small");
    std::memcpy(bytes_.data() + used_, from, count);
    used_ += count;
  }

  std::array<std::byte, control_bytes_max> bytes_{};
  std::size_t used_ = 0;
};

/// Once something is missing, everything read is zero and good() is false.
class reader {
 public:
  explicit reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class Value>
  void get(Value& value) {
    good_ = good_ && bytes_.size() >= sizeof value;
    if (!good_) return;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
  }
  void get_text(std::string& text, std::size_t bytes_max) {
    std::uint16_t bytes = 0;
    get(bytes);
    good_ = good_ && bytes <= bytes_max && bytes <= bytes_.size();
    if (!good_) return;
    text.assign(reinterpret_cast<const char*>(bytes_.data()), bytes);
    bytes_ = bytes_.subspan(bytes);
  }
  bool good() const { return good_; }
  bool at_end() const { return good_ && bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool good_ = true;
};

/// In the order of write_fields.
void read_fields(reader& in, control_message& out) {
  std::uint8_t reason = 0;
  switch (out.kind) {
    case control_kind::hello:
      in.get(out.from.node.value);
      in.get(out.wanted.value);
      in.get_text(out.from.name, node_name_bytes_max);
      in.get(out.nonce);
      break;
    case control_kind::challenge:
      in.get(out.from.node.value);
      in.get_text(out.from.name, node_name_bytes_max);
      in.get(out.nonce);
      in.get(out.proof);
      break;
    case control_kind::proof:
      in.get(out.proof);
      break;
    case control_kind::refusal:
      in.get(reason);
      out.reason = static_cast<refusal_kind>(reason);
      in.get_text(out.text, refusal_text_bytes_max);
      break;
    case control_kind::goodbye:
      in.get(out.frames);
      break;
    case control_kind::welcome:
    case control_kind::heartbeat:
    case control_kind::goodbye_seen:
      break;
  }
}

void write_fields(writer& out, const control_message& message) {
  switch (message.kind) {
    case control_kind::hello:
      out.put(message.from.node.value);
      out.put(message.wanted.value);
      out.put_text(message.from.name, node_name_bytes_max);
      out.put(message.nonce);
      break;
    case control_kind::challenge:
      out.put(message.from.node.value);
      out.put_text(message.from.name, node_name_bytes_max);
      out.put(message.nonce);
      out.put(message.proof);
      break;
    case control_kind::proof:
      out.put(message.proof);
      break;
    case control_kind::refusal:
      out.put(static_cast<std::uint8_t>(message.reason));
      out.put_text(message.text, refusal_text_bytes_max);
      break;
    case control_kind::goodbye:
      out.put(message.frames);
      break;
    case control_kind::welcome:
    case control_kind::heartbeat:
    case control_kind::goodbye_seen:
      break;
  }
}

}  // namespace

std::vector<std::byte> pack(const control_message& message) {
  writer out;
  out.put(magic);
  out.put(message.version);
  out.put(static_cast<std::uint8_t>(message.kind));
  write_fields(out, message);
  return out.take();
}

result<control_message> unpack(std::span<const std::byte> bytes) {
  reader in(bytes);
  control_message out;
  std::uint32_t got_magic = 0;
  std::uint8_t kind = 0;
  in.get(got_magic);
  in.get(out.version);
  in.get(kind);
  if (!in.good() || got_magic != magic)
    return fail(errc::malformed, "not a message of this protocol");
  if (kind < static_cast<std::uint8_t>(control_kind::hello) ||
      kind > static_cast<std::uint8_t>(control_kind::goodbye_seen)) {
    return fail(errc::malformed, "control message of unknown kind " + std::to_string(kind));
  }
  out.kind = static_cast<control_kind>(kind);
  if (out.version != transport_version && out.kind != control_kind::refusal) return out;
  read_fields(in, out);
  if (!in.at_end()) {
    return fail(errc::malformed, "control message of kind " + std::to_string(kind) + " with " +
                                     std::to_string(bytes.size()) + " bytes");
  }
  return out;
}

control_message refusal(refusal_kind reason, std::string text) {
  control_message message;
  message.kind = control_kind::refusal;
  message.reason = reason;
  message.text = std::move(text);
  return message;
}

}  // namespace cedar::transport
