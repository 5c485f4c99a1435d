// Goal: the vision tower's operations of every backend against the judge, with derived bounds.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "kernels/reference/reference_backend.hpp"
#include "tests/numeric/kernels/random_tensors.hpp"
#include "tests/numeric/kernels/tolerance.hpp"
#include "tests/support/backends.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

double magnitude(bf16 value) {
  return std::fabs(static_cast<double>(to_float(value)));
}

/// Largest norm of a head's row, and largest element.
std::pair<double, double> sizes(const matrix_buffer<bf16>& x, std::size_t head_dim) {
  double norm = 0;
  double element = 0;
  for (std::size_t first = 0; first < x.span().size(); first += head_dim) {
    double squares = 0;
    for (const bf16 value : x.span().subspan(first, head_dim)) {
      squares += magnitude(value) * magnitude(value);
      element = std::max(element, magnitude(value));
    }
    norm = std::max(norm, std::sqrt(squares));
  }
  return {norm, element};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(numeric_vision)

/// The bias is one more term of the sum.
BOOST_DATA_TEST_CASE(linear_layers_add_their_bias, backends(), name) {
  const auto backend = backend_of(name);
  for (const std::size_t inputs : {1U, 588U, 1024U}) {
    random_tensors random(inputs);
    const auto x = random.half(7, inputs);
    const auto weight = random.half(45, inputs, 0.1F);
    const auto bias = random.half(1, 45, 5);
    matrix_buffer<bf16> actual(7, 45);
    matrix_buffer<float> exact(7, 45), terms(7, 45);
    backend->linear_bf16({actual.view(), x.view(), weight.view(), bias.span()});
    const auto judge = make_reference_backend();
    judge->linear_f32({exact.view(), x.view(), weight.view()});
    judge->linear_f32({terms.view(), absolute(x.view()).view(), absolute(weight.view()).view()});
    std::vector<double> errors;
    for (std::size_t i = 0; i < exact.span().size(); ++i) {
      const float b = to_float(bias.span()[i % 45]);
      exact.data()[i] += b;
      errors.push_back(sum_error(inputs) * static_cast<double>(terms.data()[i]) +
                       2 * unit * std::fabs(static_cast<double>(exact.data()[i])));
    }
    check_rounding("linear_bf16 with bias", actual.span(), exact.span(), errors);
  }
}

/// As rope of kernels/README.md.
BOOST_DATA_TEST_CASE(rope_2d_is_two_products_and_a_sum, backends(), name) {
  const auto backend = backend_of(name);
  const std::vector<std::int32_t> rows = {0, 1, 17, 92, 92};
  const std::vector<std::int32_t> columns = {0, 92, 3, 1, 92};
  for (const std::size_t head_dim : {4U, 16U, 64U, 80U}) {
    random_tensors random(head_dim);
    std::vector<float> frequencies;
    for (std::size_t i = 0; i < head_dim / 4; ++i)
      frequencies.push_back(
          std::pow(10000.0F, -4 * static_cast<float>(i) / static_cast<float>(head_dim)));
    const auto x = random.half(rows.size(), 3 * head_dim);
    std::vector<double> errors;
    for (std::size_t i = 0; i < x.span().size(); ++i) {
      const std::size_t inside = i % head_dim;
      const std::size_t other = i - inside + (inside + head_dim / 2) % head_dim;
      errors.push_back(4 * unit * (magnitude(x.span()[i]) + magnitude(x.span()[other])));
    }
    const auto rotated = [&](const cedar::kernels::backend& by) {
      matrix_buffer<bf16> out(x.rows(), x.cols());
      std::ranges::copy(x.span(), out.data());
      by.rope_2d({out.view(), head_dim, rows, columns, frequencies});
      return out;
    };
    check_half("rope_2d " + std::to_string(head_dim), rotated(*backend).span(),
               rotated(*make_reference_backend()).span(), errors);
  }
}

/// As attention of kernels/README.md, without a sink.
BOOST_DATA_TEST_CASE(full_attention_is_a_mean_with_rounded_probabilities, backends(), name) {
  const auto backend = backend_of(name);
  for (const auto& [rows, keys, heads, head_dim] :
       {std::tuple{5U, 5U, 1U, 4U}, {56U, 56U, 4U, 16U}, {60U, 700U, 2U, 64U}}) {
    random_tensors random(keys);
    const auto q = random.half(rows, heads * head_dim);
    const auto k = random.half(keys, heads * head_dim);
    const auto v = random.half(keys, heads * head_dim);
    const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
    const auto run = [&, dim = head_dim](const cedar::kernels::backend& by) {
      matrix_buffer<bf16> o(q.rows(), q.cols());
      by.full_attention({o.view(), q.view(), k.view(), v.view(), dim, static_cast<float>(scale)});
      return o;
    };
    const double score = sizes(q, head_dim).first * sizes(k, head_dim).first * scale;
    const double probability = 2 * score * (sum_error(head_dim) + 2 * unit) + function_error;
    const double error = sizes(v, head_dim).second * (0x1p-7 + 2 * probability + sum_error(keys));
    check_half("full_attention " + std::to_string(keys), run(*backend).span(),
               run(*make_reference_backend()).span(), std::vector<double>(q.span().size(), error));
  }
}

/// GELU is correctly rounded to fp32 but for one in fifty results; a sum has one rounding.
BOOST_DATA_TEST_CASE(gelu_and_add_are_exact_before_rounding, backends(), name) {
  const auto backend = backend_of(name);
  random_tensors random(3);
  const auto x = random.half(9, 517, 3);
  const auto other = random.half(9, 517, 0.1F);
  matrix_buffer<bf16> actual(9, 517), expected(9, 517);
  backend->gelu({actual.view(), x.view()});
  make_reference_backend()->gelu({expected.view(), x.view()});
  check_half("gelu", actual.span(), expected.span(), scaled(unit, expected.span()), 0);
  backend->add({actual.view(), x.view(), other.view()});
  make_reference_backend()->add({expected.view(), x.view(), other.view()});
  check_half("add", actual.span(), expected.span(), scaled(unit, expected.span()), 0);
}

BOOST_DATA_TEST_CASE(silu_is_rounded_where_that_is_asked_for, backends(), name) {
  const auto backend = backend_of(name);
  random_tensors random(4);
  const auto gate = random.half(5, 301, 2);
  const auto up = random.half(5, 301, 2);
  matrix_buffer<bf16> actual(5, 301), expected(5, 301);
  backend->swiglu({actual.view(), gate.view(), up.view(), {}, 0, true});
  make_reference_backend()->swiglu({expected.view(), gate.view(), up.view(), {}, 0, true});
  // A silu on the boundary between two bf16 numbers may fall to either: a step of the product.
  check_half("swiglu", actual.span(), expected.span(), scaled(0x1p-7, expected.span()));
}

BOOST_AUTO_TEST_SUITE_END()
