// Bytes that a call of an operation reads and writes, everything once: what it must move if nothing
// of it is in a cache.
#pragma once

#include <cstddef>

#include "kernels/ops/arguments.hpp"

namespace cedar::tools {

std::size_t bytes_of(const kernels::rms_norm_arguments& a);
std::size_t bytes_of(const kernels::quantize_fp8_arguments& a);
std::size_t bytes_of(const kernels::rms_norm_quantize_arguments& a);
std::size_t bytes_of(const kernels::linear_fp8_arguments& a);
std::size_t bytes_of(const kernels::linear_fp4_arguments& a);
std::size_t bytes_of(const kernels::linear_fp8_weight_only_arguments& a);
std::size_t bytes_of(const kernels::linear_bf16_arguments& a);
std::size_t bytes_of(const kernels::linear_f32_arguments& a);
std::size_t bytes_of(const kernels::grouped_linear_fp8_arguments& a);
std::size_t bytes_of(const kernels::grouped_linear_fp4_arguments& a);
std::size_t bytes_of(const kernels::grouped_linear_fp8_weight_only_arguments& a);
std::size_t bytes_of(const kernels::hc_coefficients_arguments& a);
std::size_t bytes_of(const kernels::hc_collapse_arguments& a);
std::size_t bytes_of(const kernels::hc_expand_arguments& a);
std::size_t bytes_of(const kernels::hc_transition_arguments& a);
std::size_t bytes_of(const kernels::rope_arguments& a);
std::size_t bytes_of(const kernels::pack_entries_arguments& a);
std::size_t bytes_of(const kernels::rms_norm_entries_arguments& a);
std::size_t bytes_of(const kernels::unpack_entries_arguments& a);
std::size_t bytes_of(const kernels::requantize_entries_arguments& a);
std::size_t bytes_of(const kernels::compressor_pool_arguments& a);
std::size_t bytes_of(const kernels::index_scores_arguments& a);
std::size_t bytes_of(const kernels::attention_arguments& a);
std::size_t bytes_of(const kernels::gate_scores_arguments& a);
std::size_t bytes_of(const kernels::swiglu_arguments& a);
std::size_t bytes_of(const kernels::swiglu_quantize_arguments& a);
std::size_t bytes_of(const kernels::moe_combine_arguments& a);
std::size_t bytes_of(const kernels::engram_gate_arguments& a);
std::size_t bytes_of(const kernels::rope_2d_arguments& a);
std::size_t bytes_of(const kernels::full_attention_arguments& a);
std::size_t bytes_of(const kernels::gelu_arguments& a);
std::size_t bytes_of(const kernels::add_arguments& a);

}  // namespace cedar::tools
