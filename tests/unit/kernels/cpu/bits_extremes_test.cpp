// Goal: quantised products have the bits of plain scalar code for scales near the ends of their
// range, on every instruction set. Method: as in bits_test.cpp, with scales that make every
// product finite while what a kernel may compute on the way would not be.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <utility>

#include "tests/unit/kernels/cpu/plain_model.hpp"
#include "tests/unit/kernels/cpu/random_tensors.hpp"

namespace {

using namespace cedar::kernels;

template <class Arguments, class Run, class Plain>
void same_bits(Arguments arguments, std::size_t rows, std::size_t outputs, const Run& run,
               const Plain& plain) {
  tensor<bf16> expected(rows, outputs);
  arguments.y = expected.view();
  plain(arguments);
  for (std::size_t row = 0; row < rows; ++row)
    for (const bf16 value : expected.view().row(row)) BOOST_REQUIRE(std::isfinite(to_float(value)));
  on_every_target([&](const backend& cpu) {
    tensor<bf16> actual(rows, outputs);
    arguments.y = actual.view();
    run(cpu, arguments);
    BOOST_TEST((actual == expected));
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cpu_bits_extremes)

// One row takes the scales of FP8 weights to x where that is exact. Here x * scale would overflow
// in some strips of 32 outputs and not in others.
BOOST_AUTO_TEST_CASE(fp8_products_are_right_where_scaled_activations_would_overflow) {
  constexpr std::size_t inputs = 96;
  constexpr std::size_t outputs = 200;
  for (const std::size_t rows : {1U, 5U}) {
    random_tensors source(21);
    const auto x = source.e4m3_codes(rows, inputs);
    const auto x_scales = source.bytes(rows, inputs / 32, 217, 218);
    const auto w = source.bytes(outputs, inputs, 0, 15);
    auto w_scales = source.bytes((outputs + 31) / 32, inputs / 32, 145, 149);
    for (std::uint8_t& scale : w_scales.view().row(1)) scale = 120;
    for (std::uint8_t& scale : w_scales.view().row(4)) scale = 0;
    linear_fp8_arguments arguments;
    arguments.x = {x.view(), x_scales.view()};
    arguments.weight = {w.view(), std::as_const(w_scales).view()};
    same_bits(
        arguments, rows, outputs, [](const backend& cpu, const auto& all) { cpu.linear_fp8(all); },
        [](const auto& all) { plain::linear_fp8(all); });
  }
}

BOOST_AUTO_TEST_CASE(fp4_weights_are_exact_for_scales_near_both_ends) {
  constexpr std::size_t inputs = 64;
  constexpr std::size_t outputs = 70;
  struct scale_bytes {
    std::size_t w_first, w_last, x_first, x_last;
  };
  for (const auto& [w_first, w_last, x_first, x_last] :
       {scale_bytes{0, 40, 130, 140}, scale_bytes{235, 252, 105, 110}})
    for (const std::size_t rows : {1U, 5U}) {
      random_tensors source(22);
      const auto x = source.e4m3_codes(rows, inputs);
      const auto x_scales = source.bytes(rows, inputs / 32, x_first, x_last);
      const auto w = source.bytes(outputs, inputs / 2, 0, 255);
      const auto w_scales = source.bytes(outputs, inputs / 32, w_first, w_last);
      linear_fp4_arguments arguments;
      arguments.x = {x.view(), x_scales.view()};
      arguments.weight = {w.view(), w_scales.view()};
      same_bits(
          arguments, rows, outputs,
          [](const backend& cpu, const auto& all) { cpu.linear_fp4(all); },
          [](const auto& all) { plain::linear_fp4(all); });
    }
}

BOOST_AUTO_TEST_SUITE_END()
