// The linear layers: five combinations of row formats of one product.
#include <algorithm>

#include "kernels/cpu/internal/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/internal/product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// Products plus the bias of their output.
struct bias_sink {
  matrix_sink<bf16> out;
  const float* bias;  ///< readable up to 3 elements behind the last

  HWY_INLINE void operator()(std::size_t row, std::size_t first, std::size_t count,
                             four_vector sums) const {
    out(row, first, count, hn::Add(sums, hn::LoadU(four_tag{}, bias + first)));
  }
};

void linear_fp8_rows(const linear_fp8_arguments& a, workers threads) {
  multiply(threads, fp8_rows(a.x), a.y.rows, a.x.codes.cols, fp8_weight_rows(a.weight), a.y.cols,
           a.segments, matrix_sink<bf16>{a.y});
}

void linear_fp4_rows(const linear_fp4_arguments& a, workers threads) {
  multiply(threads, fp8_rows(a.x), a.y.rows, a.x.codes.cols, fp4_weight_rows(a.weight), a.y.cols,
           a.segments, matrix_sink<bf16>{a.y});
}

void linear_fp8_weight_only_rows(const linear_fp8_weight_only_arguments& a, workers threads) {
  multiply(threads, plain_rows<bf16>{a.x}, a.y.rows, a.x.cols, fp8_weight_rows(a.weight), a.y.cols,
           1, matrix_sink<bf16>{a.y});
}

void linear_bf16_rows(const linear_bf16_arguments& a, workers threads) {
  const auto multiply_to = [&](const auto& sink) HWY_ATTR {
    multiply(threads, plain_rows<bf16>{a.x}, a.y.rows, a.x.cols, plain_rows<bf16>{a.weight},
             a.y.cols, 1, sink);
  };
  if (a.bias.empty()) return multiply_to(matrix_sink<bf16>{a.y});
  scratch memory;
  float* bias = memory.take<float>(a.y.cols + width);
  for (std::size_t o = 0; o < a.y.cols; o += width)
    store(load_first(a.bias.data() + o, a.y.cols - o), bias + o);
  multiply_to(bias_sink{{a.y}, bias});
}

void linear_f32_rows(const linear_f32_arguments& a, workers threads) {
  multiply(threads, plain_rows<bf16>{a.x}, a.y.rows, a.x.cols, plain_rows<bf16>{a.weight}, a.y.cols,
           1, matrix_sink<float>{a.y});
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cedar::kernels::cpu {

HWY_EXPORT(linear_fp8_rows);
HWY_EXPORT(linear_fp4_rows);
HWY_EXPORT(linear_fp8_weight_only_rows);
HWY_EXPORT(linear_bf16_rows);
HWY_EXPORT(linear_f32_rows);

void linear_fp8(const linear_fp8_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(linear_fp8_rows)(arguments, threads);
}

void linear_fp4(const linear_fp4_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(linear_fp4_rows)(arguments, threads);
}

void linear_fp8_weight_only(const linear_fp8_weight_only_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(linear_fp8_weight_only_rows)(arguments, threads);
}

void linear_bf16(const linear_bf16_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(linear_bf16_rows)(arguments, threads);
}

void linear_f32(const linear_f32_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(linear_f32_rows)(arguments, threads);
}

namespace {

/// Asks for the first lines of the rows that a product begins with: while the one before still
/// computes, their pages are looked up and their lines are on their way.
template <class Weight>
void prefetch(const Weight& weight) {
  constexpr std::size_t rows = 8, lines = 4, line_bytes = 64;
  for (std::size_t row = 0; row < std::min(rows, weight.codes.rows); ++row) {
    for (std::size_t at = 0; at < std::min(lines * line_bytes, weight.codes.cols); at += line_bytes)
      __builtin_prefetch(weight.codes.row_data(row) + at);
    if (row < weight.scales.rows) __builtin_prefetch(weight.scales.row_data(row));
  }
}

/// One after another, each with all threads: a product is long enough for them.
template <class Product>
void multiply_each(std::span<const Product> products, void (*multiply)(const Product&, workers),
                   workers threads) {
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (i + 1 < products.size()) prefetch(products[i + 1].weight);
    if (products[i].y.rows != 0 && products[i].y.cols != 0) multiply(products[i], threads);
  }
}

}  // namespace

void grouped_linear_fp8(const grouped_linear_fp8_arguments& arguments, workers threads) {
  multiply_each(arguments.products, linear_fp8, threads);
}

void grouped_linear_fp4(const grouped_linear_fp4_arguments& arguments, workers threads) {
  multiply_each(arguments.products, linear_fp4, threads);
}

void grouped_linear_fp8_weight_only(const grouped_linear_fp8_weight_only_arguments& arguments,
                                    workers threads) {
  multiply_each(arguments.products, linear_fp8_weight_only, threads);
}

}  // namespace cedar::kernels::cpu
#endif
