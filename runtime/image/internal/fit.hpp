// Where a picture lies inside the size that it is scaled to (Pillow's ImageOps.contain).
#pragma once

#include <cmath>
#include <cstdint>

namespace cedar::image::internal {

struct fitted {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

/// The largest size of width : height inside target_width x target_height; the shorter side is
/// rounded, halves to even, and may become 0. All sides at least 1.
inline fitted fit(std::uint32_t width, std::uint32_t height, std::uint32_t target_width,
                  std::uint32_t target_height) {
  const double w = width;
  const double h = height;
  const double ratio = w / h;
  const double target_ratio = static_cast<double>(target_width) / target_height;
  if (ratio > target_ratio)
    return {target_width, static_cast<std::uint32_t>(std::nearbyint(h / w * target_width))};
  if (ratio < target_ratio)
    return {static_cast<std::uint32_t>(std::nearbyint(w / h * target_height)), target_height};
  return {target_width, target_height};
}

}  // namespace cedar::image::internal
