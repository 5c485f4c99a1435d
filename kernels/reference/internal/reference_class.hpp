// The class behind make_reference_backend(); its functions are spread over this folder by family.
#pragma once

#include "kernels/ops/backend.hpp"

namespace cedar::kernels::reference {

class reference_backend final : public backend {
 public:
  std::string_view name() const noexcept override { return "reference"; }

 private:
  // norm.cpp
  void do_rms_norm(const rms_norm_arguments& arguments) const override;
  void do_rms_norm_quantize(const rms_norm_quantize_arguments& arguments) const override;
  void do_rope(const rope_arguments& arguments) const override;
  // linear.cpp
  void do_linear_fp8(const linear_fp8_arguments& arguments) const override;
  void do_linear_fp4(const linear_fp4_arguments& arguments) const override;
  void do_linear_fp8_weight_only(const linear_fp8_weight_only_arguments& arguments) const override;
  void do_linear_bf16(const linear_bf16_arguments& arguments) const override;
  void do_linear_f32(const linear_f32_arguments& arguments) const override;
  void do_grouped_linear_fp8(const grouped_linear_fp8_arguments& arguments) const override;
  void do_grouped_linear_fp4(const grouped_linear_fp4_arguments& arguments) const override;
  void do_grouped_linear_fp8_weight_only(
      const grouped_linear_fp8_weight_only_arguments& arguments) const override;
  // streams.cpp
  void do_hc_coefficients(const hc_coefficients_arguments& arguments) const override;
  void do_hc_collapse(const hc_collapse_arguments& arguments) const override;
  void do_hc_expand(const hc_expand_arguments& arguments) const override;
  void do_hc_transition(const hc_transition_arguments& arguments) const override;
  void do_engram_gate(const engram_gate_arguments& arguments) const override;
  // entries.cpp
  void do_quantize_fp8(const quantize_fp8_arguments& arguments) const override;
  void do_pack_entries(const pack_entries_arguments& arguments) const override;
  void do_rms_norm_entries(const rms_norm_entries_arguments& arguments) const override;
  void do_unpack_entries(const unpack_entries_arguments& arguments) const override;
  void do_requantize_entries(const requantize_entries_arguments& arguments) const override;
  // attention.cpp
  void do_compressor_pool(const compressor_pool_arguments& arguments) const override;
  void do_index_scores(const index_scores_arguments& arguments) const override;
  void do_attention(const attention_arguments& arguments) const override;
  // moe.cpp
  void do_gate_scores(const gate_scores_arguments& arguments) const override;
  void do_swiglu(const swiglu_arguments& arguments) const override;
  void do_swiglu_quantize(const swiglu_quantize_arguments& arguments) const override;
  void do_moe_combine(const moe_combine_arguments& arguments) const override;
  // vision.cpp
  void do_rope_2d(const rope_2d_arguments& arguments) const override;
  void do_full_attention(const full_attention_arguments& arguments) const override;
  void do_gelu(const gelu_arguments& arguments) const override;
  void do_add(const add_arguments& arguments) const override;
};

}  // namespace cedar::kernels::reference
