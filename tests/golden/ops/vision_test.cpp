// Goal: rotations, activations of the vision tower against golden vectors.
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "kernels/base/buffer.hpp"
#include "runtime/model/rotary.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/golden.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

/// Rotates pairs (1, 0), which gives the cosines in the first half of a head and the sines in the
/// second.
matrix_buffer<bf16> rotated_units(const backend& backend, std::size_t rows, std::size_t columns,
                                  std::size_t head_dim) {
  matrix_buffer<bf16> x(rows * columns, head_dim);
  std::vector<std::int32_t> at_row, at_column;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    std::ranges::fill(x.view().row(i).first(head_dim / 2), to_bf16(1));
    at_row.push_back(static_cast<std::int32_t>(i / columns));
    at_column.push_back(static_cast<std::int32_t>(i % columns));
  }
  const auto frequencies = cedar::model::rotary_of(10000, static_cast<std::uint32_t>(head_dim / 2),
                                                   cedar::model::yarn_config{});
  backend.rope_2d({x.view(), head_dim, at_row, at_column, frequencies});
  return x;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_vision)

BOOST_DATA_TEST_CASE(rotates_by_rows_and_columns, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/vision_ops.safetensors");
  for (const auto& [rows, columns, pairs] : {std::tuple{3U, 5U, 8U}, {7U, 8U, 8U}, {2U, 2U, 32U}}) {
    const std::string prefix = "rope2d." + std::to_string(rows) + "x" + std::to_string(columns) +
                               ".dim" + std::to_string(pairs) + ".";
    const auto cosines = golden.matrix<float>(prefix + "cos");
    const auto sines = golden.matrix<float>(prefix + "sin");
    const auto x = rotated_units(*backend, rows, columns, 2 * cosines.cols);
    for (std::size_t row = 0; row < x.rows(); ++row) {
      std::vector<bf16> expected;
      for (const auto table : {cosines.row(row), sines.row(row)})
        for (const float value : table) expected.push_back(to_bf16(value));
      check_ulps(prefix + std::to_string(row), x.view().row(row), expected, 1);
    }
  }
}

BOOST_DATA_TEST_CASE(applies_gelu_and_silu, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/vision_ops.safetensors");
  const std::span<const bf16> x = golden.vector<bf16>("gelu.x");
  const matrix_view<const bf16> row(x.data(), 1, x.size());
  matrix_buffer<bf16> y(1, x.size());
  backend->gelu({y.view(), row});
  // The recorded tail was computed as 1 + erf(x), which cancels (README, section 6).
  const std::span<const bf16> expected = golden.vector<bf16>("gelu.y");
  for (std::size_t i = 0; i < x.size(); ++i)
    BOOST_TEST((ulp_distance(y.span()[i], expected[i]) <= 1 ||
                std::abs(to_float(y.span()[i]) - to_float(expected[i])) <= 1e-7F),
               "gelu(" << to_float(x[i]) << ") = " << to_float(y.span()[i]) << " instead of "
                       << to_float(expected[i]));
  matrix_buffer<bf16> ones(1, x.size());
  std::ranges::fill(ones.span(), to_bf16(1));
  backend->swiglu({y.view(), row, ones.view(), {}, 0, true});
  check_ulps("silu", y.span(), golden.vector<bf16>("silu.y"), 1);
}

BOOST_AUTO_TEST_SUITE_END()
