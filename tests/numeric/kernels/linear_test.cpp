// Goal: every linear layer of every backend within the error of one binary32 sum and one rounding.
// Method: the judge's linear_f32 on dequantised values (exact in bf16) gives the unrounded result,
// on their magnitudes the size of the terms. The judge's own quantised layers pass the same test.
#include "kernels/reference/reference_backend.hpp"
#include "tests/numeric/kernels/random_tensors.hpp"
#include "tests/numeric/kernels/tolerance.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/golden.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

struct shape {
  std::size_t rows, outputs, inputs;
};

// Odd rows and outputs; inputs of one block, of odd numbers of blocks, and of the released widths.
const std::vector<shape> block_shapes = {{1, 1, 32},   {101, 9, 96},  {2, 7, 96},    {3, 33, 160},
                                         {9, 65, 384}, {5, 65, 1280}, {1, 40, 2304}, {7, 31, 5120}};
const std::vector<shape> free_shapes = {{1, 1, 1},    {101, 6, 37},  {31, 3, 5120},
                                        {2, 3, 5},    {3, 17, 33},   {4, 64, 31},
                                        {17, 9, 100}, {1, 66, 1283}, {7, 5, 5120}};

struct judgement {
  matrix_buffer<float> exact;
  std::vector<double> errors;
};

judgement judge(matrix_view<const bf16> x, matrix_view<const bf16> weight) {
  const auto judge = make_reference_backend();
  judgement out{{x.rows, weight.rows}, {}};
  judge->linear_f32({out.exact.view(), x, weight});
  matrix_buffer<float> magnitudes(x.rows, weight.rows);
  judge->linear_f32({magnitudes.view(), absolute(x).view(), absolute(weight).view()});
  out.errors = scaled(sum_error(x.cols), magnitudes.span());
  return out;
}

std::string text(const char* operation, const shape& s) {
  return std::string(operation) + " " + std::to_string(s.rows) + "x" + std::to_string(s.outputs) +
         "x" + std::to_string(s.inputs);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(numeric_linear)

BOOST_DATA_TEST_CASE(fp8_by_fp8_is_one_sum_and_one_rounding, backends(), name) {
  const auto backend = backend_of(name);
  for (const shape& s : block_shapes) {
    random_tensors random(s.inputs);
    const fp8_rows x = random.rows_fp8(s.rows, s.inputs);
    const fp8_weight weight = random.weight_fp8(s.outputs, s.inputs);
    const judgement expected =
        judge(dequantised(x.view()).view(), dequantised(weight.view()).view());
    for (const std::size_t segments : {1U, 4U}) {
      if (s.inputs % (segments * 32) != 0) continue;
      matrix_buffer<bf16> y(s.rows, s.outputs);
      backend->linear_fp8({y.view(), x.view(), weight.view(), segments});
      check_rounding(text("linear_fp8", s), y.span(), expected.exact.span(), expected.errors);
    }
  }
}

BOOST_DATA_TEST_CASE(fp8_by_fp4_is_one_sum_and_one_rounding, backends(), name) {
  const auto backend = backend_of(name);
  for (const shape& s : block_shapes) {
    random_tensors random(s.inputs + 1);
    const fp8_rows x = random.rows_fp8(s.rows, s.inputs);
    const fp4_weight weight = random.weight_fp4(s.outputs, s.inputs);
    const judgement expected =
        judge(dequantised(x.view()).view(), dequantised(weight.view()).view());
    for (const std::size_t segments : {1U, 4U}) {
      if (s.inputs % (segments * 32) != 0) continue;
      matrix_buffer<bf16> y(s.rows, s.outputs);
      backend->linear_fp4({y.view(), x.view(), weight.view(), segments});
      check_rounding(text("linear_fp4", s), y.span(), expected.exact.span(), expected.errors);
    }
  }
}

BOOST_DATA_TEST_CASE(bf16_by_fp8_equals_bf16_by_the_dequantised_weight, backends(), name) {
  const auto backend = backend_of(name);
  for (const shape& s : block_shapes) {
    random_tensors random(s.inputs + 2);
    const matrix_buffer<bf16> x = random.half(s.rows, s.inputs);
    const fp8_weight weight = random.weight_fp8(s.outputs, s.inputs);
    const matrix_buffer<bf16> plain = dequantised(weight.view());
    const judgement expected = judge(x.view(), plain.view());
    matrix_buffer<bf16> y(s.rows, s.outputs);
    backend->linear_fp8_weight_only({y.view(), x.view(), weight.view()});
    check_rounding(text("linear_fp8_weight_only", s), y.span(), expected.exact.span(),
                   expected.errors);
    matrix_buffer<bf16> same(s.rows, s.outputs);
    backend->linear_bf16({same.view(), x.view(), plain.view()});
    check_equal("both ways", y.span(), same.span());
  }
}

BOOST_DATA_TEST_CASE(bf16_by_bf16_is_one_sum_and_one_rounding, backends(), name) {
  const auto backend = backend_of(name);
  for (const shape& s : free_shapes) {
    random_tensors random(s.inputs + 3);
    const matrix_buffer<bf16> x = random.half(s.rows, s.inputs);
    const matrix_buffer<bf16> weight = random.half(s.outputs, s.inputs, 0.05F);
    const judgement expected = judge(x.view(), weight.view());
    matrix_buffer<bf16> y(s.rows, s.outputs);
    backend->linear_bf16({y.view(), x.view(), weight.view()});
    check_rounding(text("linear_bf16", s), y.span(), expected.exact.span(), expected.errors);
  }
}

BOOST_DATA_TEST_CASE(bf16_to_float_is_one_sum, backends(), name) {
  const auto backend = backend_of(name);
  for (const shape& s : free_shapes) {
    random_tensors random(s.inputs + 4);
    const matrix_buffer<bf16> x = random.half(s.rows, s.inputs);
    const matrix_buffer<bf16> weight = random.half(s.outputs, s.inputs, 0.05F);
    const judgement expected = judge(x.view(), weight.view());
    matrix_buffer<float> y(s.rows, s.outputs);
    backend->linear_f32({y.view(), x.view(), weight.view()});
    check_float(text("linear_f32", s), y.span(), expected.exact.span(), expected.errors);
  }
}

BOOST_AUTO_TEST_SUITE_END()
