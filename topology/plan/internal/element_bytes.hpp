// Bytes of the elements that messages and working memory are made of.
#pragma once

#include <cstdint>

namespace cedar::topology {

inline constexpr std::uint64_t bf16_bytes = 2;
inline constexpr std::uint64_t f32_bytes = 4;

}  // namespace cedar::topology
