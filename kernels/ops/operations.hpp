// The operations of backend.hpp as a list, for backends that treat all of them alike: those that hand
// every call to another one.
//
//   #define PASS_ON(operation) void do_##operation(const operation##_arguments& a) const override;
//   CEDAR_OPERATIONS(PASS_ON)
#pragma once

// clang-format off
#define CEDAR_OPERATIONS(DO) \
  DO(rms_norm) \
  DO(quantize_fp8) \
  DO(rms_norm_quantize) \
  DO(linear_fp8) \
  DO(linear_fp4) \
  DO(linear_fp8_weight_only) \
  DO(linear_bf16) \
  DO(linear_f32) \
  DO(grouped_linear_fp8) \
  DO(grouped_linear_fp4) \
  DO(grouped_linear_fp8_weight_only) \
  DO(hc_coefficients) \
  DO(hc_collapse) \
  DO(hc_expand) \
  DO(hc_transition) \
  DO(rope) \
  DO(pack_entries) \
  DO(rms_norm_entries) \
  DO(unpack_entries) \
  DO(requantize_entries) \
  DO(compressor_pool) \
  DO(index_scores) \
  DO(attention) \
  DO(gate_scores) \
  DO(swiglu) \
  DO(swiglu_quantize) \
  DO(moe_combine) \
  DO(engram_gate) \
  DO(rope_2d) \
  DO(full_attention) \
  DO(gelu) \
  DO(add)
// clang-format on

