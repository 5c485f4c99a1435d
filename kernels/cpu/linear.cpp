// The linear layers: five combinations of row formats of one product.
#include "kernels/cpu/internal/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/internal/product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

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
  multiply(threads, plain_rows<bf16>{a.x}, a.y.rows, a.x.cols, plain_rows<bf16>{a.weight}, a.y.cols,
           1, matrix_sink<bf16>{a.y});
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

}  // namespace cedar::kernels::cpu
#endif
