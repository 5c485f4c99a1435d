// Goal: linear layers, norms and rotations against golden vectors, at most 1 bf16 step apart.
#include <cmath>

#include "kernels/base/buffer.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/golden.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

struct quantised {
  matrix_buffer<std::uint8_t> codes;
  matrix_buffer<std::uint8_t> scales;

  fp8_rows_view view() const { return {codes.view(), scales.view()}; }
};

quantised quantise(const backend& backend, matrix_view<const bf16> x) {
  quantised out{{x.rows, x.cols}, {x.rows, x.cols / 32}};
  backend.quantize_fp8({x, out.codes.view(), out.scales.view()});
  return out;
}

std::vector<bf16> rounded(std::span<const float> values) {
  std::vector<bf16> out;
  for (const float value : values) out.push_back(to_bf16(value));
  return out;
}

void check_linear(const golden_file& golden, const std::string& format, std::span<const bf16> y) {
  check_ulps(format + ".y", y, golden.vector<bf16>(format + ".y"), 1);
  check_ulps(format + ".y_exact", y, rounded(golden.vector<float>(format + ".y_exact")), 1);
}

void check_rope(const backend& backend, const golden_file& golden, const std::string& set) {
  const std::span<const float> params = golden.vector<float>(set + ".params");
  const std::span<const float> frequencies = golden.vector<float>(set + ".freqs");
  BOOST_TEST(static_cast<float>(2 * frequencies.size()) == params[0]);
  const auto x = golden.matrix<bf16>(set + ".x");
  const std::size_t head_dim = golden.shape(set + ".x").back();
  for (const bool inverse : {false, true}) {
    matrix_buffer<bf16> rotated(x.rows, x.cols);
    std::copy(x.data, x.data + x.rows * x.cols, rotated.data());
    backend.rope(
        {rotated.view(), head_dim, golden.vector<std::int32_t>("positions"), frequencies, inverse});
    const std::string expected = set + (inverse ? ".inverse" : ".rotated");
    check_ulps(expected, rotated.span(), golden.vector<bf16>(expected), 1);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_linear)

BOOST_DATA_TEST_CASE(multiplies_by_fp8_weights, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/gemm.safetensors");
  const quantised x = quantise(*backend, golden.matrix<bf16>("x"));
  const auto codes = golden.matrix<std::uint8_t>("fp8.weight");
  matrix_buffer<bf16> y(x.codes.rows(), codes.rows);
  backend->linear_fp8({y.view(), x.view(), {codes, golden.matrix<std::uint8_t>("fp8.scale")}, 1});
  check_linear(golden, "fp8", y.span());
}

BOOST_DATA_TEST_CASE(multiplies_by_fp4_weights, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/gemm.safetensors");
  const quantised x = quantise(*backend, golden.matrix<bf16>("x"));
  const auto codes = golden.matrix<std::uint8_t>("fp4.weight");
  matrix_buffer<bf16> y(x.codes.rows(), codes.rows);
  backend->linear_fp4({y.view(), x.view(), {codes, golden.matrix<std::uint8_t>("fp4.scale")}, 1});
  check_linear(golden, "fp4", y.span());
}

BOOST_DATA_TEST_CASE(normalises_rows, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/rms_norm.safetensors");
  const auto x = golden.matrix<bf16>("x");
  for (const auto& [epsilon, expected] :
       {std::pair(1e-20F, "y.eps_1e-20"), {1e-6F, "y.eps_1e-06"}}) {
    matrix_buffer<bf16> y(x.rows, x.cols);
    backend->rms_norm({y.view(), x, golden.vector<bf16>("weight"), epsilon});
    check_ulps(expected, y.span(), golden.vector<bf16>(expected), 1);
  }
}

BOOST_DATA_TEST_CASE(rotates_forwards_and_backwards, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/rope.safetensors");
  for (const std::string set :
       {"released_window", "released_compressed", "tiny12_compressed", "yarn_mid", "plain_32"})
    check_rope(*backend, golden, set);
}

/// Rotating the pair (1, 0) shows cosine and sine themselves, to bf16.
BOOST_DATA_TEST_CASE(takes_cosine_and_sine_of_the_float_angle, backends(), name) {
  const auto backend = backend_of(name);
  const golden_file golden("ops/rope.safetensors");
  for (const std::string set : {"released_window", "released_compressed"}) {
    const auto cosines = golden.matrix<float>(set + ".cos");
    const auto sines = golden.matrix<float>(set + ".sin");
    matrix_buffer<bf16> unit(cosines.rows, 2 * cosines.cols);
    for (std::size_t i = 0; i < unit.span().size(); i += 2) unit.data()[i] = to_bf16(1);
    backend->rope({unit.view(), unit.cols(), golden.vector<std::int32_t>("positions"),
                   golden.vector<float>(set + ".freqs"), false});
    for (std::size_t row = 0; row < cosines.rows; ++row)
      for (std::size_t i = 0; i < cosines.cols; ++i) {
        const std::span<const bf16> pair = unit.view().row(row).subspan(2 * i, 2);
        const std::vector<bf16> expected =
            rounded(std::vector<float>{cosines.row(row)[i], sines.row(row)[i]});
        check_ulps(set + " row " + std::to_string(row) + " pair " + std::to_string(i), pair,
                   expected, 1);
      }
  }
}

BOOST_AUTO_TEST_SUITE_END()
