// The kernels of this backend as free functions, one per operation of ops/arguments.hpp. Shapes
// have been checked and there is at least one row (ops/validate.cpp). Stateless and thread-safe; a
// call is divided among `threads` where that pays.
#pragma once

#include "kernels/cpu/internal/workers.hpp"
#include "kernels/ops/arguments.hpp"

namespace cedar::kernels::cpu {

void rms_norm(const rms_norm_arguments& arguments, workers threads);
void quantize_fp8(const quantize_fp8_arguments& arguments, workers threads);
void rms_norm_quantize(const rms_norm_quantize_arguments& arguments, workers threads);
void linear_fp8(const linear_fp8_arguments& arguments, workers threads);
void linear_fp4(const linear_fp4_arguments& arguments, workers threads);
void linear_fp8_weight_only(const linear_fp8_weight_only_arguments& arguments, workers threads);
void linear_bf16(const linear_bf16_arguments& arguments, workers threads);
void linear_f32(const linear_f32_arguments& arguments, workers threads);
void grouped_linear_fp8(const grouped_linear_fp8_arguments& arguments, workers threads);
void grouped_linear_fp4(const grouped_linear_fp4_arguments& arguments, workers threads);
void grouped_linear_fp8_weight_only(const grouped_linear_fp8_weight_only_arguments& arguments,
                                    workers threads);
void hc_coefficients(const hc_coefficients_arguments& arguments, workers threads);
void hc_collapse(const hc_collapse_arguments& arguments, workers threads);
void hc_expand(const hc_expand_arguments& arguments, workers threads);
void hc_transition(const hc_transition_arguments& arguments, workers threads);
void rope(const rope_arguments& arguments, workers threads);
void pack_entries(const pack_entries_arguments& arguments, workers threads);
void rms_norm_entries(const rms_norm_entries_arguments& arguments, workers threads);
void unpack_entries(const unpack_entries_arguments& arguments, workers threads);
void requantize_entries(const requantize_entries_arguments& arguments, workers threads);
void compressor_pool(const compressor_pool_arguments& arguments, workers threads);
void index_scores(const index_scores_arguments& arguments, workers threads);
void attention(const attention_arguments& arguments, workers threads);
void gate_scores(const gate_scores_arguments& arguments, workers threads);
void swiglu(const swiglu_arguments& arguments, workers threads);
void swiglu_quantize(const swiglu_quantize_arguments& arguments, workers threads);
void moe_combine(const moe_combine_arguments& arguments, workers threads);
void engram_gate(const engram_gate_arguments& arguments, workers threads);
void rope_2d(const rope_2d_arguments& arguments, workers threads);
void full_attention(const full_attention_arguments& arguments, workers threads);
void gelu(const gelu_arguments& arguments, workers threads);
void add(const add_arguments& arguments, workers threads);

}  // namespace cedar::kernels::cpu
