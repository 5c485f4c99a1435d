#include <vector>

#include "kernels/reference/formats.hpp"
#include "kernels/reference/internal/reference_class.hpp"
#include "kernels/reference/rounding.hpp"

namespace cedar::kernels::reference {

namespace {

constexpr std::size_t block = 32;  // columns (and, of FP8 weights, rows) that share a scale

/// A matrix in double, row by row.
struct dense {
  std::size_t cols = 0;
  std::vector<double> values;

  std::span<const double> row(std::size_t index) const {
    return {values.data() + index * cols, cols};
  }
};

dense widen_rows(const matrix_view<const bf16>& x) {
  dense out{x.cols, {}};
  out.values.reserve(x.rows * x.cols);
  for (std::size_t row = 0; row < x.rows; ++row)
    for (const bf16 value : x.row(row)) out.values.push_back(widen(value));
  return out;
}

dense decode_rows(const matrix_view<const std::uint8_t>& codes) {
  dense out{codes.cols, {}};
  out.values.reserve(codes.rows * codes.cols);
  for (std::size_t row = 0; row < codes.rows; ++row)
    for (const std::uint8_t code : codes.row(row)) out.values.push_back(decode_e4m3(code));
  return out;
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Per block of 32 columns: the product of the codes, times both scales; blocks ascending.
double scaled_dot(std::span<const double> x, std::span<const std::uint8_t> x_scales,
                  std::span<const double> weight, std::span<const std::uint8_t> weight_scales) {
  double sum = 0;
  for (std::size_t b = 0; b < x_scales.size(); ++b)
    sum += dot(x.subspan(b * block, block), weight.subspan(b * block, block)) *
           decode_e8m0(x_scales[b]) * decode_e8m0(weight_scales[b]);
  return sum;
}

}  // namespace

void reference_backend::do_linear_fp8(const linear_fp8_arguments& arguments) const {
  const dense x = decode_rows(arguments.x.codes);
  const dense weight = decode_rows(arguments.weight.codes);
  for (std::size_t row = 0; row < arguments.y.rows; ++row)
    for (std::size_t o = 0; o < arguments.y.cols; ++o)
      arguments.y.row(row)[o] =
          round_bf16(scaled_dot(x.row(row), arguments.x.scales.row(row), weight.row(o),
                                arguments.weight.scales.row(o / block)));
}

void reference_backend::do_linear_fp4(const linear_fp4_arguments& arguments) const {
  const dense x = decode_rows(arguments.x.codes);
  std::vector<double> weight(x.cols);
  for (std::size_t o = 0; o < arguments.y.cols; ++o) {
    for (std::size_t i = 0; i < x.cols; ++i)
      weight[i] = decode_packed_e2m1(arguments.weight.codes.row(o), i);
    for (std::size_t row = 0; row < arguments.y.rows; ++row)
      arguments.y.row(row)[o] = round_bf16(scaled_dot(x.row(row), arguments.x.scales.row(row),
                                                      weight, arguments.weight.scales.row(o)));
  }
}

void reference_backend::do_linear_fp8_weight_only(
    const linear_fp8_weight_only_arguments& arguments) const {
  const dense x = widen_rows(arguments.x);
  dense weight = decode_rows(arguments.weight.codes);
  for (std::size_t o = 0; o < arguments.y.cols; ++o)
    for (std::size_t i = 0; i < x.cols; ++i)
      weight.values[o * x.cols + i] *=
          decode_e8m0(arguments.weight.scales.row(o / block)[i / block]);
  for (std::size_t row = 0; row < arguments.y.rows; ++row)
    for (std::size_t o = 0; o < arguments.y.cols; ++o)
      arguments.y.row(row)[o] = round_bf16(dot(x.row(row), weight.row(o)));
}

void reference_backend::do_linear_bf16(const linear_bf16_arguments& arguments) const {
  const dense x = widen_rows(arguments.x);
  const dense weight = widen_rows(arguments.weight);
  for (std::size_t row = 0; row < arguments.y.rows; ++row)
    for (std::size_t o = 0; o < arguments.y.cols; ++o) {
      const double bias = arguments.bias.empty() ? 0 : widen(arguments.bias[o]);
      arguments.y.row(row)[o] = round_bf16(dot(x.row(row), weight.row(o)) + bias);
    }
}

void reference_backend::do_linear_f32(const linear_f32_arguments& arguments) const {
  const dense x = widen_rows(arguments.x);
  const dense weight = widen_rows(arguments.weight);
  for (std::size_t row = 0; row < arguments.y.rows; ++row)
    for (std::size_t o = 0; o < arguments.y.cols; ++o)
      arguments.y.row(row)[o] = static_cast<float>(dot(x.row(row), weight.row(o)));
}

void reference_backend::do_grouped_linear_fp8(const grouped_linear_fp8_arguments& arguments) const {
  for (const linear_fp8_arguments& product : arguments.products) do_linear_fp8(product);
}

void reference_backend::do_grouped_linear_fp4(const grouped_linear_fp4_arguments& arguments) const {
  for (const linear_fp4_arguments& product : arguments.products) do_linear_fp4(product);
}

void reference_backend::do_grouped_linear_fp8_weight_only(
    const grouped_linear_fp8_weight_only_arguments& arguments) const {
  for (const linear_fp8_weight_only_arguments& product : arguments.products)
    do_linear_fp8_weight_only(product);
}

}  // namespace cedar::kernels::reference
