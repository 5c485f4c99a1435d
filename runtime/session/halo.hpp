// How many rows the window state of a stack of layers depends on.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cedar::session {

/// Rows that must walk `layers` layers of attention windows of `window` rows, so that
/// what the last `window` of them leave in every layer's window, and the last row's output, are
/// those of a walk that began at position 0: each layer below the last one adds window - 1 rows
/// (design: window + (window - 1) * (layers - 1); 2,541 in the decoder of the released model).
constexpr std::uint64_t halo_rows(std::uint32_t window, std::uint32_t layers) noexcept {
  return window + std::uint64_t{window - 1} * (std::max(layers, 1U) - 1);
}

}  // namespace cedar::session
