#include "runtime/image/patches.hpp"

#include <array>

#include "kernels/base/check.hpp"

namespace cedar::image {

namespace {

using kernels::bf16;

std::array<bf16, 256> normalised_values() {
  std::array<bf16, 256> out;
  for (std::size_t value = 0; value < out.size(); ++value)
    out[value] = kernels::to_bf16((static_cast<float>(value) / 255.0F - 0.5F) / 0.5F);
  return out;
}

}  // namespace

void write_patches(const rgb_image& picture, std::uint32_t patch, kernels::matrix_view<bf16> out) {
  CEDAR_REQUIRE(patch > 0 && picture.width % patch == 0 && picture.height % patch == 0,
                "a picture of whole patches");
  const std::size_t columns = picture.width / patch;
  const std::size_t rows = picture.height / patch;
  CEDAR_REQUIRE(out.rows == rows * columns && out.cols == std::size_t{3} * patch * patch,
                "a row for every patch, an element for every value");
  const std::array<bf16, 256> values = normalised_values();
  for (std::size_t row = 0; row < out.rows; ++row) {
    const std::size_t top = row / columns * patch;
    const std::size_t left = row % columns * patch;
    bf16* to = out.row_data(row);
    for (std::size_t colour = 0; colour < 3; ++colour)
      for (std::size_t y = 0; y < patch; ++y) {
        const std::uint8_t* from = picture.row(top + y) + 3 * left + colour;
        for (std::size_t x = 0; x < patch; ++x) *to++ = values[from[3 * x]];
      }
  }
}

}  // namespace cedar::image
