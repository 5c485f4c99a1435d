// Frames of one connection, put together from pieces and handed out in the order they were sent,
// whatever order the network completes them in.
//
// Large frames travel in pieces so that heartbeats find a gap between them; small and large
// messages take different ways through UCX, so completion is not in order of sending.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "runtime/base/result.hpp"
#include "runtime/flow/frame.hpp"

namespace cedar::transport {

/// What precedes the frame's header in every piece.
struct piece_prefix {
  std::uint64_t sequence = 0;  ///< of the frame on its connection, from 0
  std::uint64_t payload_bytes = 0;  ///< of the whole frame
  std::uint64_t offset = 0;  ///< of this piece in the payload
};
inline constexpr std::size_t piece_prefix_bytes = 24;

class frame_inbox {
 public:
  /// Bounds of what may be incomplete or early: frames, and bytes of one.
  frame_inbox(std::size_t frames_max, std::size_t frame_bytes_max);

  /// Makes room for a piece and says where its bytes go; `header` is copied. The place stays valid
  /// until landed() was told of it. Errors: malformed (contradicts earlier pieces, old, outside of
  /// its frame), capacity (frame too large, too far ahead).
  result<std::span<std::byte>> place(const piece_prefix& prefix, std::span<const std::byte> header,
                                     std::size_t piece_bytes);

  /// The piece's bytes are there.
  void landed(std::uint64_t sequence, std::size_t piece_bytes);

  /// The next frame in order, if it is complete.
  std::optional<flow::received_frame> pop();

  /// Of the next frame in order: frames handed out so far.
  std::uint64_t popped() const { return first_; }

 private:
  struct slot {
    bool known = false;
    std::size_t bytes_left = 0;  ///< neither landed
    std::size_t bytes_unplaced = 0;
    flow::received_frame frame;
  };

  std::size_t frames_max_;
  std::size_t frame_bytes_max_;
  std::uint64_t first_ = 0;  ///< sequence of slots_[0]
  std::deque<slot> slots_;
};

}  // namespace cedar::transport
