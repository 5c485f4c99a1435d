// A message becomes a frame: Cap'n Proto header and checksum, tensor bytes by reference, packed
// lists.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/flow/frame.hpp"
#include "runtime/flow/messages.hpp"

namespace cedar::wire {

/// Version of the schema and of the packed lists; raised when an old reader would misread new
/// frames.
inline constexpr std::uint16_t protocol_version = 7;

/// Largest header encode() makes and decode() takes. Bounded by the active message header of the
/// narrowest transport (8114 bytes over shared memory); all variable data lies in the payload.
inline constexpr std::size_t header_bytes_max = 1024;

/// The frame shares the message's tensor bytes. A message that contradicts itself (row counts,
/// payload sizes, text too long) is a defect of its maker.
flow::frame encode(const flow::envelope& envelope, const flow::message& message);

}  // namespace cedar::wire
