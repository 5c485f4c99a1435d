// Goal: quantised products have the bits of plain scalar code, on every instruction set, where that
// is hard to get by chance: for scales near the ends of their range, and for sums that cancel, of
// which nothing is left but what rounding in the canonical order has left. Method: as in
// bits_test.cpp, with made up codes and scales.
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

/// Makes the second half of every row the first one backwards.
void mirror(tensor<std::uint8_t>& codes) {
  for (std::size_t row = 0; row < codes.view().rows; ++row) {
    const auto all = codes.view().row(row);
    for (std::size_t i = 0; i < all.size() / 2; ++i) all[all.size() - 1 - i] = all[i];
  }
}

/// The same, with the two codes of a byte changed for each other and the signs turned.
void mirror_negative(tensor<std::uint8_t>& codes, bool two_a_byte) {
  mirror(codes);
  for (std::size_t row = 0; row < codes.view().rows; ++row) {
    const auto all = codes.view().row(row);
    for (std::size_t i = all.size() / 2; i < all.size(); ++i)
      all[i] = static_cast<std::uint8_t>(two_a_byte ? (all[i] << 4U | all[i] >> 4U) ^ 0x88U
                                                    : all[i] ^ 0x80U);
  }
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

// The products cancel, but in other lanes. Rounded to bf16, other sums would hide their order.
BOOST_AUTO_TEST_CASE(sums_that_cancel_show_their_order) {
  constexpr std::size_t inputs = 128;
  constexpr std::size_t outputs = 70;
  for (const std::size_t rows : {1U, 2U, 5U}) {
    random_tensors source(23);
    auto x = source.e4m3_codes(rows, inputs);
    auto fp8 = source.e4m3_codes(outputs, inputs);
    auto fp4 = source.bytes(outputs, inputs / 2, 0, 255);
    auto x_scales = source.bytes(rows, inputs / 32, 117, 127);
    auto fp8_scales = source.bytes((outputs + 31) / 32, inputs / 32, 117, 127);
    auto fp4_scales = source.bytes(outputs, inputs / 32, 117, 127);
    mirror(x);
    mirror_negative(fp8, false);
    mirror_negative(fp4, true);
    for (auto* scales : {&x_scales, &fp8_scales, &fp4_scales}) mirror(*scales);
    linear_fp8_arguments by_fp8;
    by_fp8.x = {x.view(), x_scales.view()};
    by_fp8.weight = {fp8.view(), fp8_scales.view()};
    same_bits(
        by_fp8, rows, outputs, [](const backend& cpu, const auto& all) { cpu.linear_fp8(all); },
        [](const auto& all) { plain::linear_fp8(all); });
    linear_fp4_arguments by_fp4;
    by_fp4.x = by_fp8.x;
    by_fp4.weight = {fp4.view(), fp4_scales.view()};
    same_bits(
        by_fp4, rows, outputs, [](const backend& cpu, const auto& all) { cpu.linear_fp4(all); },
        [](const auto& all) { plain::linear_fp4(all); });
  }
}

BOOST_AUTO_TEST_SUITE_END()
