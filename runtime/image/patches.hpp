// Pixels to the tower's input.
#pragma once

#include "kernels/base/dtype.hpp"
#include "kernels/base/matrix_view.hpp"
#include "runtime/image/rgb_image.hpp"

namespace cedar::image {

/// Patches in reading order, each flattened as (colour, y, x): out [patches, 3 * patch * patch],
/// bf16((value / 255 - 0.5) / 0.5) computed in fp32 (DeepSeek-V4.1-Flash reference code,
/// image_processor.py). The sides of `picture` are multiples of `patch`; a defect otherwise.
void write_patches(const rgb_image& picture, std::uint32_t patch,
                   kernels::matrix_view<kernels::bf16> out);

}  // namespace cedar::image
