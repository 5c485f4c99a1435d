// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror, Shaw, "Parallel Random
// Numbers: As Easy as 1, 2, 3" (SC 2011): 128 random bits as a pure function of counter and key.
#pragma once

#include <array>
#include <cstdint>

namespace cedar::model {

using philox_counter = std::array<std::uint32_t, 4>;
using philox_key = std::array<std::uint32_t, 2>;

constexpr philox_counter philox4x32(philox_counter c, philox_key key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xd2511f53U} * c[0];
    const std::uint64_t second = std::uint64_t{0xcd9e8d57U} * c[2];
    c = {static_cast<std::uint32_t>(second >> 32) ^ c[1] ^ key[0],
         static_cast<std::uint32_t>(second),
         static_cast<std::uint32_t>(first >> 32) ^ c[3] ^ key[1],
         static_cast<std::uint32_t>(first)};
    key[0] += 0x9e3779b9U;
    key[1] += 0xbb67ae85U;
  }
  return c;
}

}  // namespace cedar::model
