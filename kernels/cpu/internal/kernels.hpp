// The kernels of this backend as free functions, one per operation of ops/arguments.hpp. Shapes
// have been checked and there is at least one row (ops/validate.cpp). Stateless and thread-safe.
#pragma once

#include "kernels/ops/arguments.hpp"

namespace cedar::kernels::cpu {

void rms_norm(const rms_norm_arguments& arguments);
void quantize_fp8(const quantize_fp8_arguments& arguments);
void linear_fp8(const linear_fp8_arguments& arguments);
void linear_fp4(const linear_fp4_arguments& arguments);
void linear_fp8_weight_only(const linear_fp8_weight_only_arguments& arguments);
void linear_bf16(const linear_bf16_arguments& arguments);
void linear_f32(const linear_f32_arguments& arguments);
void hc_coefficients(const hc_coefficients_arguments& arguments);
void hc_collapse(const hc_collapse_arguments& arguments);
void hc_expand(const hc_expand_arguments& arguments);
void rope(const rope_arguments& arguments);
void pack_entries(const pack_entries_arguments& arguments);
void unpack_entries(const unpack_entries_arguments& arguments);
void compressor_pool(const compressor_pool_arguments& arguments);
void index_scores(const index_scores_arguments& arguments);
void attention(const attention_arguments& arguments);
void gate_scores(const gate_scores_arguments& arguments);
void swiglu(const swiglu_arguments& arguments);
void moe_combine(const moe_combine_arguments& arguments);
void engram_gate(const engram_gate_arguments& arguments);

}  // namespace cedar::kernels::cpu
