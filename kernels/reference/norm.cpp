#include <cmath>

#include "kernels/reference/internal/reference_class.hpp"
#include "kernels/reference/rounding.hpp"

namespace cedar::kernels::reference {

void reference_backend::do_rms_norm(const rms_norm_arguments& arguments) const {
  for (std::size_t row = 0; row < arguments.x.rows; ++row) {
    const std::span<const bf16> x = arguments.x.row(row);
    double squares = 0;
    for (const bf16 value : x) squares += widen(value) * widen(value);
    const double mean = squares / static_cast<double>(x.size());
    const auto factor =
        static_cast<float>(1 / std::sqrt(mean + static_cast<double>(arguments.epsilon)));
    for (std::size_t i = 0; i < x.size(); ++i)
      arguments.y.row(row)[i] =
          round_bf16(to_float(arguments.weight[i]) * (to_float(x[i]) * factor));
  }
}

void reference_backend::do_rms_norm_quantize(const rms_norm_quantize_arguments& arguments) const {
  do_rms_norm(arguments.norm);
  do_quantize_fp8({arguments.norm.y, arguments.codes, arguments.scales});
}

void reference_backend::do_rope(const rope_arguments& arguments) const {
  const std::size_t pairs = arguments.frequencies.size();
  const std::size_t heads = arguments.x.cols / arguments.head_dim;
  for (std::size_t row = 0; row < arguments.x.rows; ++row) {
    for (std::size_t i = 0; i < pairs; ++i) {
      // The angle is a float by definition: near position 2^20 its rounding turns visibly.
      const float angle = static_cast<float>(arguments.positions[row]) * arguments.frequencies[i];
      const auto cosine = static_cast<float>(std::cos(static_cast<double>(angle)));
      const auto sine =
          static_cast<float>(std::sin(static_cast<double>(angle))) * (arguments.inverse ? -1 : 1);
      for (std::size_t head = 0; head < heads; ++head) {
        const std::size_t rotated = (head + 1) * arguments.head_dim - 2 * pairs;
        bf16* pair = arguments.x.row_data(row) + rotated + 2 * i;
        const float real = to_float(pair[0]);
        const float imaginary = to_float(pair[1]);
        pair[0] = round_bf16(real * cosine - imaginary * sine);
        pair[1] = round_bf16(real * sine + imaginary * cosine);
      }
    }
  }
}

}  // namespace cedar::kernels::reference
