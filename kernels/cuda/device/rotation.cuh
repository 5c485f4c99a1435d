// The rotation of a pair of elements by a position.
#pragma once

#include "kernels/cuda/device/formats.cuh"
#include "kernels/cuda/device/views.cuh"

namespace cedar::kernels::cuda {

/// Rotates (first, second) of the row by position * frequency, a product of binary32.
CEDAR_DEVICE void rotate(const global_rows<bf16>& x, std::size_t row, std::size_t first,
                         std::size_t second, std::int32_t position, float frequency, bool inverse) {
  float sine = 0, cosine = 0;
  sine_cosine(static_cast<float>(position) * frequency, sine, cosine);
  if (inverse) sine = -sine;
  const float a = widen(x.load(row, first)), b = widen(x.load(row, second));
  x.store(row, first, round_bf16(a * cosine - b * sine));
  x.store(row, second, round_bf16(a * sine + b * cosine));
}

}  // namespace cedar::kernels::cuda
