#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/base/buffer.hpp"
#include "kernels/reference/internal/reference_class.hpp"
#include "kernels/reference/rounding.hpp"

namespace cedar::kernels::reference {

namespace {

double silu(double x) {
  return x / (1 + std::exp(-x));
}

/// Linear above 20, as the released code's softplus.
double softplus(double x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}

}  // namespace

void reference_backend::do_gate_scores(const gate_scores_arguments& arguments) const {
  for (std::size_t row = 0; row < arguments.scores.rows; ++row)
    for (float& score : arguments.scores.row(row))
      score = static_cast<float>(std::sqrt(softplus(static_cast<double>(score))));
}

void reference_backend::do_swiglu(const swiglu_arguments& arguments) const {
  const float limit = arguments.limit;
  for (std::size_t row = 0; row < arguments.y.rows; ++row) {
    const float weight = arguments.route_weights.empty() ? 1.0F : arguments.route_weights[row];
    for (std::size_t i = 0; i < arguments.y.cols; ++i) {
      float gate = to_float(arguments.gate.row(row)[i]);
      float up = to_float(arguments.up.row(row)[i]);
      if (limit > 0) {
        gate = std::min(gate, limit);
        up = std::clamp(up, -limit, limit);
      }
      const double smooth = silu(gate);
      const float rounded =
          arguments.round_silu ? to_float(round_bf16(smooth)) : static_cast<float>(smooth);
      arguments.y.row(row)[i] = round_bf16(weight * (rounded * up));
    }
  }
}

void reference_backend::do_swiglu_quantize(const swiglu_quantize_arguments& arguments) const {
  matrix_buffer<bf16> hidden(arguments.gate.rows, arguments.gate.cols);
  do_swiglu(
      {hidden.view(), arguments.gate, arguments.up, arguments.route_weights, arguments.limit});
  do_quantize_fp8({std::as_const(hidden).view(), arguments.codes, arguments.scales});
}

void reference_backend::do_moe_combine(const moe_combine_arguments& arguments) const {
  const std::size_t parts = arguments.parts_per_row;
  for (std::size_t row = 0; row < arguments.y.rows; ++row) {
    for (std::size_t i = 0; i < arguments.y.cols; ++i) {
      float sum = 0;
      for (std::size_t part = 0; part < parts; ++part)
        sum += to_float(arguments.parts[row * parts + part][i]);
      arguments.y.row(row)[i] = round_bf16(sum);
    }
  }
}

}  // namespace cedar::kernels::reference
