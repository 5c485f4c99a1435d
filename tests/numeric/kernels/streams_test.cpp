// Goal: residual streams and the Engram gate of every backend against the judge, with derived
// bounds.
#include <algorithm>
#include <cmath>

#include "kernels/reference/reference_backend.hpp"
#include "tests/numeric/kernels/random_tensors.hpp"
#include "tests/numeric/kernels/tolerance.hpp"
#include "tests/support/backends.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

constexpr std::size_t rows = 3;

double magnitude(float value) {
  return std::fabs(static_cast<double>(value));
}

double largest(std::span<const float> values) {
  double out = 0;
  for (const float value : values) out = std::max(out, magnitude(value));
  return out;
}

struct coefficients {
  matrix_buffer<float> pre, post, combine;
};

struct mixing {
  std::size_t streams;
  std::size_t width;
  std::size_t iterations;
  matrix_buffer<bf16> x{};
  matrix_buffer<float> fn{}, base{}, scale{};

  mixing(std::size_t streams_count, std::size_t width_count, std::size_t iterations_count)
      : streams(streams_count), width(width_count), iterations(iterations_count) {
    random_tensors random(streams * 10000 + width);
    const std::size_t outputs = (2 + streams) * streams;
    x = random.half(rows, streams * width);
    fn = random.full(outputs, streams * width, 0.03F);
    base = random.full(1, outputs);
    scale = random.full(1, 3);
  }

  coefficients run(const backend& backend) const {
    coefficients out{{rows, streams}, {rows, streams}, {rows, streams * streams}};
    backend.hc_coefficients({x.view(), fn.view(), base.span(), scale.span(), iterations, 1e-6F,
                             1e-20F, out.pre.view(), out.post.view(), out.combine.view()});
    return out;
  }

  /// Error of a logit. m = sum / rms(x) with a sum of magnitudes of at most |x| |fn|
  /// (Cauchy-Schwarz), and |x| / rms(x) = sqrt(length): |fn| sqrt(length) bounds both the terms and
  /// m itself. The mean of squares adds half its error, then root, product with it, scale and base
  /// one rounding each.
  double logit_error() const {
    const std::size_t length = streams * width;
    double largest_norm = 0;
    for (std::size_t o = 0; o < fn.rows(); ++o) {
      double squares = 0;
      for (const float value : fn.view().row(o)) squares += magnitude(value) * magnitude(value);
      largest_norm = std::max(largest_norm, std::sqrt(squares));
    }
    const double m = largest_norm * std::sqrt(static_cast<double>(length));
    return m * largest(scale.span()) * (1.5 * sum_error(length) + function_error + 3 * unit) +
           unit * largest(base.span());
  }
};

/// Bounds of elements that are sums of `terms` products, each product and each addition rounded
/// once. The judge's result on magnitudes is the size of the terms, up to its own rounding to bf16.
std::vector<double> sum_bounds(std::size_t terms, const matrix_buffer<bf16>& magnitudes) {
  return scaled(static_cast<double>(terms) * unit * 1.01, magnitudes.span());
}

/// Inputs of the Engram gate whose keys follow the streams (row 1: oppose them), so that rho stays
/// away from 0, where its root has no derivative. Row 2 is an image row.
struct engram_case {
  std::size_t streams;
  std::size_t width;
  matrix_buffer<bf16> x{}, key_values{}, q{}, k{};
  std::vector<std::uint8_t> image_rows = {0, 0, 1};

  void fill() {
    random_tensors random(width);
    x = random.half(rows, streams * width);
    key_values = random.half(rows, (streams + 1) * width);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t i = 0; i < streams * width; ++i) {
        bf16& key = key_values.view().row(row)[i];
        const float along = to_float(x.view().row(row)[i]) * (row == 1 ? -1.0F : 1.0F);
        key = to_bf16(0.3F * to_float(key) + along);
      }
    q = random.half(streams, width, 0.1F);
    k = random.half(streams, width, 0.1F);
    for (bf16& value : q.span()) value = to_bf16(1 + to_float(value));
    for (bf16& value : k.span()) value = to_bf16(1 + to_float(value));
  }

  void run(const backend& backend, matrix_buffer<bf16>& out, matrix_buffer<float>& gates) const {
    out = {rows, streams * width};
    gates = {rows, streams};
    backend.engram_gate({out.view(), x.view(), key_values.view(), q.view(), k.view(), image_rows,
                         1e-20F, gates.view()});
  }

  /// rho is a sum over d terms whose magnitudes sum to at most sqrt(d) max|q k| (Cauchy-Schwarz),
  /// three products each; two statistics add half their error, two roots and three products follow.
  /// The root has the derivative 1/(2 root); the sigmoid passes on g(1-g) of it.
  std::vector<double> gate_errors(std::span<const float> gates) const {
    const double largest_weight = 1.6 * 1.6;  // 1 + 0.1 * 6 bounds q and k
    const double rho_error = std::sqrt(static_cast<double>(width)) * largest_weight *
                             (2 * sum_error(width) + 2 * function_error + 6 * unit);
    std::vector<double> out;
    for (const float gate : gates) {
      const double g = gate;
      const double root = g == 0 ? 1 : std::fabs(std::log(g / (1 - g)));
      out.push_back(g * (1 - g) * rho_error / (2 * root) + function_error * g);
    }
    return out;
  }

  std::vector<double> out_errors(std::span<const double> gates) const {
    std::vector<double> out;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t i = 0; i < streams * width; ++i) {
        const double value =
            magnitude(to_float(key_values.view().row(row)[streams * width + i % width]));
        out.push_back(gates[row * streams + i / width] * value +
                      2 * unit * (value + magnitude(to_float(x.view().row(row)[i]))));
      }
    return out;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(numeric_streams)

/// A sigmoid passes on a quarter of a logit's error, plus its own; a softmax at most half. A pass
/// of Sinkhorn adds streams + 2 roundings, and an iteration has two passes.
BOOST_DATA_TEST_CASE(coefficients_are_one_sum_and_elementary_functions, backends(), name) {
  const auto backend = backend_of(name);
  std::vector<mixing> cases;
  cases.emplace_back(1, 33, 1);
  cases.emplace_back(2, 5, 3);
  cases.emplace_back(4, 64, 20);
  cases.emplace_back(4, 5120, 20);
  cases.emplace_back(5, 31, 7);
  for (const mixing& mixing : cases) {
    const coefficients actual = mixing.run(*backend);
    const coefficients expected = mixing.run(*make_reference_backend());
    const double logit = mixing.logit_error();
    const double passes = static_cast<double>(2 * mixing.iterations * (mixing.streams + 2)) * unit;
    const std::string what =
        "hc " + std::to_string(mixing.streams) + "x" + std::to_string(mixing.width);
    const auto check = [&](const char* part, const matrix_buffer<float>& found,
                           const matrix_buffer<float>& judged, double bound) {
      check_float(what + part, found.span(), judged.span(),
                  std::vector<double>(judged.span().size(), bound));
    };
    check(" pre", actual.pre, expected.pre, logit / 4 + function_error + 2 * unit);
    check(" post", actual.post, expected.post, logit / 2 + 2 * function_error);
    check(" combine", actual.combine, expected.combine, logit / 2 + function_error + passes);
  }
}

BOOST_DATA_TEST_CASE(collapse_is_a_sum_over_streams, backends(), name) {
  const auto backend = backend_of(name);
  const auto judge = make_reference_backend();
  for (const auto& [streams, width] : {std::pair(1U, 7U), {2U, 33U}, {4U, 5120U}, {5U, 17U}}) {
    random_tensors random(width);
    const matrix_buffer<bf16> x = random.half(rows, streams * width);
    const matrix_buffer<float> pre = random.full(rows, streams);
    matrix_buffer<bf16> actual(rows, width), expected(rows, width), magnitudes(rows, width);
    backend->hc_collapse({actual.view(), x.view(), pre.view()});
    judge->hc_collapse({expected.view(), x.view(), pre.view()});
    judge->hc_collapse({magnitudes.view(), absolute(x.view()).view(), absolute(pre.view()).view()});
    check_half("hc_collapse", actual.span(), expected.span(), sum_bounds(streams, magnitudes));
  }
}

BOOST_DATA_TEST_CASE(expand_is_a_sum_over_streams_and_the_output, backends(), name) {
  const auto backend = backend_of(name);
  const auto judge = make_reference_backend();
  for (const auto& [streams, width] : {std::pair(1U, 7U), {2U, 33U}, {4U, 5120U}, {5U, 17U}}) {
    random_tensors random(width + 1);
    const matrix_buffer<bf16> x = random.half(rows, streams * width);
    const matrix_buffer<bf16> y = random.half(rows, width);
    const matrix_buffer<float> post = random.full(rows, streams);
    const matrix_buffer<float> mix = random.full(rows, streams * streams);
    matrix_buffer<bf16> actual(rows, x.cols()), expected(rows, x.cols()),
        magnitudes(rows, x.cols());
    backend->hc_expand({actual.view(), x.view(), y.view(), post.view(), mix.view()});
    judge->hc_expand({expected.view(), x.view(), y.view(), post.view(), mix.view()});
    judge->hc_expand({magnitudes.view(), absolute(x.view()).view(), absolute(y.view()).view(),
                      absolute(post.view()).view(), absolute(mix.view()).view()});
    check_half("hc_expand", actual.span(), expected.span(), sum_bounds(streams + 1, magnitudes));
  }
}

BOOST_DATA_TEST_CASE(engram_gate_is_one_sum_a_root_and_a_sigmoid, backends(), name) {
  const auto backend = backend_of(name);
  for (const auto& [streams, width] : {std::pair(1U, 16U), {3U, 33U}, {4U, 5120U}}) {
    engram_case test{.streams = streams, .width = width};
    test.fill();
    matrix_buffer<bf16> actual, expected;
    matrix_buffer<float> actual_gates, expected_gates;
    test.run(*backend, actual, actual_gates);
    test.run(*make_reference_backend(), expected, expected_gates);
    const std::vector<double> gate_errors = test.gate_errors(expected_gates.span());
    check_float("gates", actual_gates.span(), expected_gates.span(), gate_errors);
    check_half("out", actual.span(), expected.span(), test.out_errors(gate_errors));
  }
}

BOOST_AUTO_TEST_SUITE_END()
