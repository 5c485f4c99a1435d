#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/internal/reference_class.hpp"
#include "kernels/reference/rounding.hpp"

namespace cedar::kernels::reference {

namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double mean_square(std::span<const bf16> x) {
  double sum = 0;
  for (const bf16 value : x) sum += widen(value) * widen(value);
  return sum / static_cast<double>(x.size());
}

/// A square matrix [old stream, new stream], row-major.
struct square {
  std::size_t size = 0;
  std::vector<double> values;

  double& at(std::size_t i, std::size_t k) { return values[i * size + k]; }
};

void softmax_rows(square& c, double epsilon) {
  for (std::size_t i = 0; i < c.size; ++i) {
    double largest = c.at(i, 0);
    for (std::size_t k = 0; k < c.size; ++k) largest = std::max(largest, c.at(i, k));
    double sum = 0;
    for (std::size_t k = 0; k < c.size; ++k) sum += c.at(i, k) = std::exp(c.at(i, k) - largest);
    for (std::size_t k = 0; k < c.size; ++k) c.at(i, k) = c.at(i, k) / sum + epsilon;
  }
}

void divide_rows(square& c, double epsilon) {
  for (std::size_t i = 0; i < c.size; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < c.size; ++k) sum += c.at(i, k);
    for (std::size_t k = 0; k < c.size; ++k) c.at(i, k) /= sum + epsilon;
  }
}

void divide_columns(square& c, double epsilon) {
  for (std::size_t k = 0; k < c.size; ++k) {
    double sum = 0;
    for (std::size_t i = 0; i < c.size; ++i) sum += c.at(i, k);
    for (std::size_t i = 0; i < c.size; ++i) c.at(i, k) /= sum + epsilon;
  }
}

/// Makes c nearly doubly stochastic, ending on columns.
void sinkhorn(square& c, std::size_t iterations, double epsilon) {
  softmax_rows(c, epsilon);
  divide_columns(c, epsilon);
  for (std::size_t round = 1; round < iterations; ++round) {
    divide_rows(c, epsilon);
    divide_columns(c, epsilon);
  }
}

/// m = (x * fn^T) * (mean(x^2) + rms_epsilon)^-1/2 for one row.
std::vector<double> mixes(const hc_coefficients_arguments& arguments, std::size_t row) {
  const std::span<const bf16> x = arguments.streams.row(row);
  const double factor = 1 / std::sqrt(mean_square(x) + static_cast<double>(arguments.rms_epsilon));
  std::vector<double> m(arguments.fn.rows);
  for (std::size_t o = 0; o < m.size(); ++o) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      sum += widen(x[i]) * static_cast<double>(arguments.fn.row(o)[i]);
    m[o] = sum * factor;
  }
  return m;
}

}  // namespace

void reference_backend::do_hc_coefficients(const hc_coefficients_arguments& arguments) const {
  const std::size_t streams = arguments.pre.cols;
  const double epsilon = arguments.epsilon;
  for (std::size_t row = 0; row < arguments.streams.rows; ++row) {
    const std::vector<double> m = mixes(arguments, row);
    const auto logit = [&](std::size_t index, std::size_t part) {
      return m[index] * static_cast<double>(arguments.scale[part]) +
             static_cast<double>(arguments.base[index]);
    };
    for (std::size_t i = 0; i < streams; ++i) {
      arguments.pre.row(row)[i] = static_cast<float>(sigmoid(logit(i, 0)) + epsilon);
      arguments.post.row(row)[i] = static_cast<float>(2 * sigmoid(logit(streams + i, 1)));
    }
    square c{streams, std::vector<double>(streams * streams)};
    for (std::size_t i = 0; i < c.values.size(); ++i) c.values[i] = logit(2 * streams + i, 2);
    sinkhorn(c, arguments.iterations, epsilon);
    for (std::size_t i = 0; i < c.values.size(); ++i)
      arguments.combine.row(row)[i] = static_cast<float>(c.values[i]);
  }
}

void reference_backend::do_hc_collapse(const hc_collapse_arguments& arguments) const {
  const std::size_t width = arguments.y.cols;
  for (std::size_t row = 0; row < arguments.y.rows; ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      float sum = 0;
      for (std::size_t stream = 0; stream < arguments.pre.cols; ++stream)
        sum += arguments.pre.row(row)[stream] *
               to_float(arguments.streams.row(row)[stream * width + i]);
      arguments.y.row(row)[i] = round_bf16(sum);
    }
  }
}

void reference_backend::do_hc_expand(const hc_expand_arguments& arguments) const {
  const std::size_t width = arguments.y.cols;
  const std::size_t streams = arguments.post.cols;
  std::vector<float> old(streams);
  for (std::size_t row = 0; row < arguments.y.rows; ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t stream = 0; stream < streams;
           ++stream)  // before `out`, which may be the same
        old[stream] = to_float(arguments.streams.row(row)[stream * width + i]);
      for (std::size_t k = 0; k < streams; ++k) {
        float mixed = 0;
        for (std::size_t stream = 0; stream < streams; ++stream)
          mixed += arguments.combine.row(row)[stream * streams + k] * old[stream];
        const float sum = arguments.post.row(row)[k] * to_float(arguments.y.row(row)[i]) + mixed;
        arguments.out.row(row)[k * width + i] = round_bf16(sum);
      }
    }
  }
}

void reference_backend::do_hc_transition(const hc_transition_arguments& arguments) const {
  do_hc_expand(arguments.expand);
  do_hc_collapse(arguments.collapse_part());
  do_rms_norm_quantize(arguments.norm_part());
  do_hc_coefficients(arguments.coefficients_part());
}

void reference_backend::do_engram_gate(const engram_gate_arguments& arguments) const {
  const std::size_t width = arguments.q_weight.cols;
  const std::size_t streams = arguments.gates.cols;
  const double epsilon = arguments.epsilon;
  for (std::size_t row = 0; row < arguments.gates.rows; ++row) {
    const std::span<const bf16> value =
        arguments.key_values.row(row).subspan(streams * width, width);
    for (std::size_t k = 0; k < streams; ++k) {
      const std::span<const bf16> x = arguments.streams.row(row).subspan(k * width, width);
      const std::span<const bf16> key = arguments.key_values.row(row).subspan(k * width, width);
      double rho = 0;
      for (std::size_t i = 0; i < width; ++i)
        rho += widen(x[i]) * widen(arguments.q_weight.row(k)[i]) *
               widen(arguments.k_weight.row(k)[i]) * widen(key[i]);
      rho /= std::sqrt(mean_square(x) + epsilon);
      rho /= std::sqrt(mean_square(key) + epsilon);
      rho /= std::sqrt(static_cast<double>(width));
      const double root = std::copysign(std::sqrt(std::max(std::fabs(rho), 1e-6)), rho);
      const double gate = arguments.image_rows[row] != 0 ? 0 : sigmoid(root);
      arguments.gates.row(row)[k] = static_cast<float>(gate);
      for (std::size_t i = 0; i < width; ++i)
        arguments.out.row(row)[k * width + i] =
            round_bf16(to_float(x[i]) + static_cast<float>(gate) * to_float(value[i]));
    }
  }
}

}  // namespace cedar::kernels::reference
