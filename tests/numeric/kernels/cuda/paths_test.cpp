// Goal: a row has the same bits from the kernel for few rows and from that for many, also where its
// sum is made of several slices and segments. Method: the same eight rows alone and with one more.
#include <algorithm>

#include "tests/numeric/kernels/random_tensors.hpp"
#include "tests/support/backends.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

constexpr std::size_t few = 8, many = 9, outputs = 35;

/// run(rows, y) computes the first rows of something.
template <class T, class Run>
void check_paths(const char* what, const Run& run) {
  matrix_buffer<T> alone(few, outputs), together(many, outputs);
  run(few, alone.view());
  run(many, together.view());
  const auto bytes = std::as_bytes(together.span()).first(alone.span().size_bytes());
  BOOST_TEST(std::ranges::equal(std::as_bytes(alone.span()), bytes), what << " differs");
}

fp8_rows_view first(const fp8_rows& all, std::size_t rows) {
  return {all.codes.view().rows_from(0, rows), all.scales.view().rows_from(0, rows)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_linear_paths)

BOOST_DATA_TEST_CASE(quantised_rows_have_the_same_bits, backends(), name) {
  const auto backend = backend_of(name);
  for (const std::size_t inputs : {1984U, 5632U}) {
    random_tensors random(inputs);
    const fp8_rows x = random.rows_fp8(many, inputs);
    const fp8_weight fp8 = random.weight_fp8(outputs, inputs);
    const fp4_weight fp4 = random.weight_fp4(outputs, inputs);
    for (const std::size_t segments : {1U, 4U}) {
      if (inputs % (segments * 32) != 0) continue;
      check_paths<bf16>("linear_fp8", [&](std::size_t rows, matrix_view<bf16> y) {
        backend->linear_fp8({y, first(x, rows), fp8.view(), segments});
      });
      check_paths<bf16>("linear_fp4", [&](std::size_t rows, matrix_view<bf16> y) {
        backend->linear_fp4({y, first(x, rows), fp4.view(), segments});
      });
    }
  }
}

BOOST_DATA_TEST_CASE(plain_rows_have_the_same_bits, backends(), name) {
  const auto backend = backend_of(name);
  for (const std::size_t inputs : {1984U, 6400U}) {
    random_tensors random(inputs);
    const auto x = random.half(many, inputs), weight = random.half(outputs, inputs);
    const fp8_weight fp8 = random.weight_fp8(outputs, inputs);
    const auto rows_of = [&](std::size_t rows) { return x.view().rows_from(0, rows); };
    check_paths<float>("linear_f32", [&](std::size_t rows, matrix_view<float> y) {
      backend->linear_f32({y, rows_of(rows), weight.view()});
    });
    check_paths<bf16>("linear_fp8_weight_only", [&](std::size_t rows, matrix_view<bf16> y) {
      backend->linear_fp8_weight_only({y, rows_of(rows), fp8.view()});
    });
  }
}

BOOST_AUTO_TEST_SUITE_END()
