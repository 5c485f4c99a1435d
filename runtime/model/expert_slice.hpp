// A part of the routed experts that is placed apart from the stages of its layers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cedar::model {

/// The same experts of every layer first_layer..last_layer.
struct expert_slice {
  std::uint32_t number = 0;  ///< tells the slices of a placement apart
  std::uint32_t first_layer = 0;
  std::uint32_t last_layer = 0;  ///< inclusive
  std::vector<std::uint32_t> experts;  ///< ids, ascending

  bool holds(std::uint32_t layer) const noexcept {
    return layer >= first_layer && layer <= last_layer;
  }
  bool holds(std::uint32_t layer, std::uint32_t expert) const noexcept {
    return holds(layer) && std::ranges::binary_search(experts, expert);
  }
  friend bool operator==(const expert_slice&, const expert_slice&) = default;
};

}  // namespace cedar::model
