// XXH3-64 over a frame: header segment, then payload. Finds accidents, not forgery; connections are
// authenticated by runtime/transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace cedar::wire {

/// Of the parts as if they were one run of bytes.
std::uint64_t checksum_of(std::initializer_list<std::span<const std::byte>> parts);

}  // namespace cedar::wire
