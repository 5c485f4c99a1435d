// Goal: norms and rotations of every backend against the judge, with derived bounds.
#include <algorithm>
#include <cmath>

#include "kernels/reference/reference_backend.hpp"
#include "tests/numeric/kernels/random_tensors.hpp"
#include "tests/numeric/kernels/tolerance.hpp"
#include "tests/support/backends.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

matrix_buffer<bf16> rotated(const backend& backend, const matrix_buffer<bf16>& x,
                            std::size_t head_dim, std::span<const std::int32_t> positions,
                            std::span<const float> frequencies, bool inverse) {
  matrix_buffer<bf16> out(x.rows(), x.cols());
  std::copy(x.span().begin(), x.span().end(), out.data());
  backend.rope({out.view(), head_dim, positions, frequencies, inverse});
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(numeric_norm)

/// The mean of squares has only positive terms, so its relative error is that of the sum; the root
/// halves it; 1/sqrt and two products follow.
BOOST_DATA_TEST_CASE(rms_norm_is_one_sum_and_three_operations, backends(), name) {
  const auto backend = backend_of(name);
  for (const std::size_t width : {1U, 5U, 96U, 1280U, 5117U, 5120U}) {
    random_tensors random(width);
    for (const float size : {1e-6F, 1.0F, 1e6F}) {  // from streams smaller than the released ones
      const matrix_buffer<bf16> x = random.half(3, width, size);
      const matrix_buffer<bf16> weight = random.half(1, width);
      matrix_buffer<bf16> actual(3, width);
      matrix_buffer<bf16> expected(3, width);
      backend->rms_norm({actual.view(), x.view(), weight.span(), 1e-20F});
      make_reference_backend()->rms_norm({expected.view(), x.view(), weight.span(), 1e-20F});
      const double relative = sum_error(width) / 2 + function_error + 2 * unit;
      check_half("rms_norm " + std::to_string(width), actual.span(), expected.span(),
                 scaled(relative, expected.span()));
    }
  }
}

/// Cosine and sine are off by at most one unit (twice the half unit of a correctly rounded number
/// below 1), each product and their sum by one rounding.
BOOST_DATA_TEST_CASE(rope_is_two_products_and_a_sum, backends(), name) {
  const auto backend = backend_of(name);
  constexpr std::size_t head_dim = 80;
  constexpr std::size_t heads = 3;
  const std::vector<std::int32_t> positions = {0, 1, 2, 127, 4095, 65536, 524287, 1048575};
  for (const std::size_t pairs : {1U, 3U, 8U, 32U, 40U}) {
    random_tensors random(pairs);
    std::vector<float> frequencies;
    for (std::size_t i = 0; i < pairs; ++i)
      frequencies.push_back(
          std::pow(160000.0F, -static_cast<float>(i) / static_cast<float>(pairs)));
    const matrix_buffer<bf16> x = random.half(positions.size(), heads * head_dim);
    std::vector<double> errors;
    for (std::size_t i = 0; i < x.span().size(); ++i)
      errors.push_back(4 * unit *
                       (std::fabs(static_cast<double>(to_float(x.span()[i]))) +
                        std::fabs(static_cast<double>(to_float(x.span()[i ^ 1U])))));
    for (const bool inverse : {false, true})
      check_half(
          "rope of " + std::to_string(pairs) + " pairs",
          rotated(*backend, x, head_dim, positions, frequencies, inverse).span(),
          rotated(*make_reference_backend(), x, head_dim, positions, frequencies, inverse).span(),
          errors);
  }
}

BOOST_AUTO_TEST_SUITE_END()
