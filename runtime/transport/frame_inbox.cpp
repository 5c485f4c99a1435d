#include "runtime/transport/frame_inbox.hpp"

#include <string>
#include <utility>

#include "kernels/base/check.hpp"

namespace cedar::transport {

frame_inbox::frame_inbox(std::size_t frames_max, std::size_t frame_bytes_max)
    : frames_max_(frames_max), frame_bytes_max_(frame_bytes_max) {}

result<std::span<std::byte>> frame_inbox::place(const piece_prefix& prefix,
                                                std::span<const std::byte> header,
                                                std::size_t piece_bytes) {
  const std::string what = "frame " + std::to_string(prefix.sequence);
  if (prefix.sequence < first_) return fail(errc::malformed, what + " came twice");
  if (prefix.sequence - first_ >= frames_max_) {
    return fail(errc::capacity, what + " is too far ahead of " + std::to_string(first_));
  }
  if (prefix.payload_bytes > frame_bytes_max_) {
    return fail(errc::capacity, what + " of " + std::to_string(prefix.payload_bytes) +
                                    " bytes exceeds the limit of " +
                                    std::to_string(frame_bytes_max_));
  }
  const std::size_t index = prefix.sequence - first_;
  if (index >= slots_.size()) slots_.resize(index + 1);
  slot& at = slots_[index];
  if (!at.known) {
    at.known = true;
    at.frame.header.assign(header.begin(), header.end());
    at.frame.payload = kernels::buffer::uninitialized(prefix.payload_bytes);
    at.bytes_left = at.bytes_unplaced = prefix.payload_bytes;
  } else if (at.frame.payload.bytes() != prefix.payload_bytes || piece_bytes == 0) {
    return fail(errc::malformed, what + ": its pieces contradict each other");
  }
  if (prefix.offset > prefix.payload_bytes || piece_bytes > prefix.payload_bytes - prefix.offset ||
      piece_bytes > at.bytes_unplaced) {
    return fail(errc::malformed, what + ": a piece lies outside of its frame");
  }
  at.bytes_unplaced -= piece_bytes;
  return at.frame.payload.span().subspan(prefix.offset, piece_bytes);
}

void frame_inbox::landed(std::uint64_t sequence, std::size_t piece_bytes) {
  CEDAR_ASSERT(sequence >= first_ && sequence - first_ < slots_.size(), "piece of no frame");
  slot& at = slots_[sequence - first_];
  CEDAR_ASSERT(piece_bytes <= at.bytes_left, "more bytes landed than were placed");
  at.bytes_left -= piece_bytes;
}

std::optional<flow::received_frame> frame_inbox::pop() {
  if (slots_.empty() || !slots_.front().known || slots_.front().bytes_left > 0) return std::nullopt;
  flow::received_frame frame = std::move(slots_.front().frame);
  slots_.pop_front();
  ++first_;
  return frame;
}

}  // namespace cedar::transport
