// Every kernel in plain scalar code, in the canonical order and with the canonical functions: what
// the vector code must reproduce bit for bit. Formats are decoded here independently of it.
#pragma once

#include <vector>

#include "kernels/ops/arguments.hpp"

namespace cedar::kernels::plain {

float decode_e4m3(std::uint8_t code);
float decode_e2m1(std::uint8_t code);
float decode_e8m0(std::uint8_t code);

/// The dequantised elements of one entry.
std::vector<float> decode_entry(entry_format format, const std::byte* entry, std::size_t width);

void rms_norm(const rms_norm_arguments& a);
void quantize_fp8(const quantize_fp8_arguments& a);
void rms_norm_quantize(const rms_norm_quantize_arguments& a);
void linear_fp8(const linear_fp8_arguments& a);
void linear_fp4(const linear_fp4_arguments& a);
void linear_fp8_weight_only(const linear_fp8_weight_only_arguments& a);
void linear_bf16(const linear_bf16_arguments& a);
void linear_f32(const linear_f32_arguments& a);
void hc_coefficients(const hc_coefficients_arguments& a);
void hc_collapse(const hc_collapse_arguments& a);
void hc_expand(const hc_expand_arguments& a);
void requantize_entries(const requantize_entries_arguments& a);
void hc_transition(const hc_transition_arguments& a);
void rope(const rope_arguments& a);
void compressor_pool(const compressor_pool_arguments& a);
void index_scores(const index_scores_arguments& a);
void attention(const attention_arguments& a);
void gate_scores(const gate_scores_arguments& a);
void swiglu(const swiglu_arguments& a);
void swiglu_quantize(const swiglu_quantize_arguments& a);
void moe_combine(const moe_combine_arguments& a);
void engram_gate(const engram_gate_arguments& a);
void rope_2d(const rope_2d_arguments& a);
void full_attention(const full_attention_arguments& a);
void gelu(const gelu_arguments& a);
void add(const add_arguments& a);

}  // namespace cedar::kernels::plain
