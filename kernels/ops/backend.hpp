// What a compute backend must provide: one function per kernel of arguments.hpp.
//
// The public functions check shapes and dtypes once (validate.cpp) and call the implementation. The
// model receives a `const backend&` and never links a particular one.
//
// 1. A backend has no state that a call changes: it may be used from several threads at once.
// 2. Results of a row do not depend on other rows of the call.
// 3. `reference` accumulates in double and is the judge of accuracy; `cpu` follows the canonical
//    reduction order (kernels/README.md) and gives the same bits on every machine.
#pragma once

#include <string_view>

#include "kernels/ops/arguments.hpp"

namespace cedar::kernels {

class backend {
 public:
  virtual ~backend() = default;

  /// "reference", "cpu", ...
  virtual std::string_view name() const noexcept = 0;

  void rms_norm(const rms_norm_arguments& arguments) const;
  void quantize_fp8(const quantize_fp8_arguments& arguments) const;
  void rms_norm_quantize(const rms_norm_quantize_arguments& arguments) const;
  void linear_fp8(const linear_fp8_arguments& arguments) const;
  void linear_fp4(const linear_fp4_arguments& arguments) const;
  void linear_fp8_weight_only(const linear_fp8_weight_only_arguments& arguments) const;
  void linear_bf16(const linear_bf16_arguments& arguments) const;
  void linear_f32(const linear_f32_arguments& arguments) const;
  void grouped_linear_fp8(const grouped_linear_fp8_arguments& arguments) const;
  void grouped_linear_fp4(const grouped_linear_fp4_arguments& arguments) const;
  void grouped_linear_fp8_weight_only(
      const grouped_linear_fp8_weight_only_arguments& arguments) const;
  void hc_coefficients(const hc_coefficients_arguments& arguments) const;
  void hc_collapse(const hc_collapse_arguments& arguments) const;
  void hc_expand(const hc_expand_arguments& arguments) const;
  void hc_transition(const hc_transition_arguments& arguments) const;
  void rope(const rope_arguments& arguments) const;
  void pack_entries(const pack_entries_arguments& arguments) const;
  void rms_norm_entries(const rms_norm_entries_arguments& arguments) const;
  void unpack_entries(const unpack_entries_arguments& arguments) const;
  void requantize_entries(const requantize_entries_arguments& arguments) const;
  void compressor_pool(const compressor_pool_arguments& arguments) const;
  void index_scores(const index_scores_arguments& arguments) const;
  void attention(const attention_arguments& arguments) const;
  void gate_scores(const gate_scores_arguments& arguments) const;
  void swiglu(const swiglu_arguments& arguments) const;
  void swiglu_quantize(const swiglu_quantize_arguments& arguments) const;
  void moe_combine(const moe_combine_arguments& arguments) const;
  void engram_gate(const engram_gate_arguments& arguments) const;
  void rope_2d(const rope_2d_arguments& arguments) const;
  void full_attention(const full_attention_arguments& arguments) const;
  void gelu(const gelu_arguments& arguments) const;
  void add(const add_arguments& arguments) const;

 protected:
  backend() = default;
  backend(const backend&) = default;
  backend& operator=(const backend&) = default;

 private:
  virtual void do_rms_norm(const rms_norm_arguments& arguments) const = 0;
  virtual void do_quantize_fp8(const quantize_fp8_arguments& arguments) const = 0;
  virtual void do_rms_norm_quantize(const rms_norm_quantize_arguments& arguments) const = 0;
  virtual void do_linear_fp8(const linear_fp8_arguments& arguments) const = 0;
  virtual void do_linear_fp4(const linear_fp4_arguments& arguments) const = 0;
  virtual void do_linear_fp8_weight_only(const linear_fp8_weight_only_arguments& arguments) const = 0;
  virtual void do_linear_bf16(const linear_bf16_arguments& arguments) const = 0;
  virtual void do_linear_f32(const linear_f32_arguments& arguments) const = 0;
  virtual void do_grouped_linear_fp8(const grouped_linear_fp8_arguments& arguments) const = 0;
  virtual void do_grouped_linear_fp4(const grouped_linear_fp4_arguments& arguments) const = 0;
  virtual void do_grouped_linear_fp8_weight_only(
      const grouped_linear_fp8_weight_only_arguments& arguments) const = 0;
  virtual void do_hc_coefficients(const hc_coefficients_arguments& arguments) const = 0;
  virtual void do_hc_collapse(const hc_collapse_arguments& arguments) const = 0;
  virtual void do_hc_expand(const hc_expand_arguments& arguments) const = 0;
  virtual void do_hc_transition(const hc_transition_arguments& arguments) const = 0;
  virtual void do_rope(const rope_arguments& arguments) const = 0;
  virtual void do_pack_entries(const pack_entries_arguments& arguments) const = 0;
  virtual void do_rms_norm_entries(const rms_norm_entries_arguments& arguments) const = 0;
  virtual void do_unpack_entries(const unpack_entries_arguments& arguments) const = 0;
  virtual void do_requantize_entries(const requantize_entries_arguments& arguments) const = 0;
  virtual void do_compressor_pool(const compressor_pool_arguments& arguments) const = 0;
  virtual void do_index_scores(const index_scores_arguments& arguments) const = 0;
  virtual void do_attention(const attention_arguments& arguments) const = 0;
  virtual void do_gate_scores(const gate_scores_arguments& arguments) const = 0;
  virtual void do_swiglu(const swiglu_arguments& arguments) const = 0;
  virtual void do_swiglu_quantize(const swiglu_quantize_arguments& arguments) const = 0;
  virtual void do_moe_combine(const moe_combine_arguments& arguments) const = 0;
  virtual void do_engram_gate(const engram_gate_arguments& arguments) const = 0;
  virtual void do_rope_2d(const rope_2d_arguments& arguments) const = 0;
  virtual void do_full_attention(const full_attention_arguments& arguments) const = 0;
  virtual void do_gelu(const gelu_arguments& arguments) const = 0;
  virtual void do_add(const add_arguments& arguments) const = 0;
};

}  // namespace cedar::kernels
