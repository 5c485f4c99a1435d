// Pixels as the tower's preprocessing knows them: 8-bit RGB, rows from the top, no gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cedar::image {

struct rgb_image {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> pixels;  ///< [height, width, 3]

  rgb_image() = default;
  /// All pixels black.
  rgb_image(std::uint32_t columns, std::uint32_t rows)
      : width(columns), height(rows), pixels(std::size_t{3} * columns * rows) {}

  std::uint8_t* row(std::size_t y) { return pixels.data() + 3 * width * y; }
  const std::uint8_t* row(std::size_t y) const { return pixels.data() + 3 * width * y; }
};

}  // namespace cedar::image
