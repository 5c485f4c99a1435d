// Scaling: bit for bit what Pillow's ImageOps.pad(image, size, BICUBIC, (127, 127, 127)) gives,
// with which the released preprocessing makes its pixels.
#pragma once

#include "runtime/base/result.hpp"
#include "runtime/image/rgb_image.hpp"

namespace cedar::image {

/// `picture` scaled into width x height with its proportions kept, centred on grey (127). Bicubic
/// with a = -0.5, the support widened by the factor of shrinking; columns first, then rows, rounded
/// to 8 bits in between. A picture that fits already is copied. Error: invalid_argument: one of its
/// sides would become 0.
result<rgb_image> pad_to(const rgb_image& picture, std::uint32_t width, std::uint32_t height);

}  // namespace cedar::image
