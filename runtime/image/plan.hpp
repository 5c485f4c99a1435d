// From the size of a picture to the grids that the model sees: a pure function of integers and IEEE
// doubles, so that whoever counts tokens and whoever encodes agree. (DeepSeek-V4.1-Flash reference
// code, inference/image_processor.py.)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace cedar::image {

/// Values of a configuration's vision part.
struct image_rules {
  std::uint32_t patch = 14;  ///< pixels of a patch's side
  std::uint32_t downsample = 3;  ///< patches of a token's side
  std::uint32_t tokens_max = 1024;  ///< of one span, delimiters included
  std::uint32_t pixels_min = 0;  ///< smaller pictures are enlarged to about this many
  std::optional<double> wh_ratio_max = {};  ///< wider pictures are planned as if they were narrower
};

/// What becomes of a picture.
struct image_plan {
  std::uint32_t width = 0;  ///< pixels, patch_columns * patch
  std::uint32_t height = 0;
  std::uint32_t patch_rows = 0;
  std::uint32_t patch_columns = 0;
  std::uint32_t token_rows = 0;
  std::uint32_t token_columns = 0;

  std::uint32_t patches() const noexcept { return patch_rows * patch_columns; }
  /// Aligned embeddings.
  std::uint32_t cells() const noexcept { return token_rows * token_columns; }
  /// Positions of the span in the sequence.
  std::uint32_t span_tokens() const noexcept { return token_rows * (token_columns + 1) + 2; }
  friend bool operator==(const image_plan&, const image_plan&) = default;
};

/// Of a picture of width x height pixels, both at least 1 (a defect otherwise).
image_plan plan_image(std::uint32_t width, std::uint32_t height, const image_rules& rules);

/// Of a grid of patches that somebody else planned, if it is one of the rules'.
std::optional<image_plan> plan_of_patches(std::uint32_t patch_rows, std::uint32_t patch_columns,
                                          const image_rules& rules);

/// What stands at a position of an image span; all have the image token's id. Values are those of
/// the reference code's token types.
enum class span_token : std::uint8_t { start = 0, image = 1, newline = 2, end = 3 };

/// Start; for each token row its images and a newline; end. plan.span_tokens() elements.
std::vector<span_token> span_layout(const image_plan& plan);

}  // namespace cedar::image
