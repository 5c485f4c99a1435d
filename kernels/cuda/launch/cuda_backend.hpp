// The operations of the backend interface on a device.
//
// 1. A call queues kernels on the stream that the backend was made with and returns; its results
//    are there once the stream has reached them. (Emulated, at once.)
// 2. All memory that arguments name must be within the device's reach, and stay as it is till then.
//    So must the spans themselves, which the host reads too (ops/validate.cpp).
// 3. A row's bits depend neither on other rows of the call nor on how many there are, and are the
//    same on every run on the same architecture. Emulated, they are within the tolerances of
//    kernels/README.md; what devices may add to them, kernels/cuda/README.md says.
#pragma once

#include <string_view>

#include "kernels/cuda/device/platform.cuh"
#include "kernels/ops/backend.hpp"
#include "kernels/plan/device_limits.hpp"

namespace cedar::kernels::cuda {

class cuda_backend : public backend {
 public:
  /// `limits` are those of the stream's device.
  cuda_backend(stream_handle stream, const plan::device_limits& limits)
      : stream_(stream), limits_(limits) {}

  std::string_view name() const noexcept override { return "cuda"; }

 private:
  void do_rms_norm(const rms_norm_arguments& arguments) const override;
  void do_quantize_fp8(const quantize_fp8_arguments& arguments) const override;
  void do_rms_norm_quantize(const rms_norm_quantize_arguments& arguments) const override;
  void do_linear_fp8(const linear_fp8_arguments& arguments) const override;
  void do_linear_fp4(const linear_fp4_arguments& arguments) const override;
  void do_linear_fp8_weight_only(const linear_fp8_weight_only_arguments& arguments) const override;
  void do_linear_bf16(const linear_bf16_arguments& arguments) const override;
  void do_linear_f32(const linear_f32_arguments& arguments) const override;
  void do_grouped_linear_fp8(const grouped_linear_fp8_arguments& arguments) const override;
  void do_grouped_linear_fp4(const grouped_linear_fp4_arguments& arguments) const override;
  void do_grouped_linear_fp8_weight_only(
      const grouped_linear_fp8_weight_only_arguments& arguments) const override;
  void do_gate_scores(const gate_scores_arguments& arguments) const override;
  void do_swiglu(const swiglu_arguments& arguments) const override;
  void do_swiglu_quantize(const swiglu_quantize_arguments& arguments) const override;
  void do_moe_combine(const moe_combine_arguments& arguments) const override;
  void do_hc_coefficients(const hc_coefficients_arguments& arguments) const override;
  void do_hc_collapse(const hc_collapse_arguments& arguments) const override;
  void do_hc_expand(const hc_expand_arguments& arguments) const override;
  void do_hc_transition(const hc_transition_arguments& arguments) const override;
  void do_rope(const rope_arguments& arguments) const override;
  void do_pack_entries(const pack_entries_arguments& arguments) const override;
  void do_rms_norm_entries(const rms_norm_entries_arguments& arguments) const override;
  void do_unpack_entries(const unpack_entries_arguments& arguments) const override;
  void do_requantize_entries(const requantize_entries_arguments& arguments) const override;
  void do_compressor_pool(const compressor_pool_arguments& arguments) const override;
  void do_index_scores(const index_scores_arguments& arguments) const override;
  void do_attention(const attention_arguments& arguments) const override;
  void do_engram_gate(const engram_gate_arguments& arguments) const override;
  void do_rope_2d(const rope_2d_arguments& arguments) const override;
  void do_full_attention(const full_attention_arguments& arguments) const override;
  void do_gelu(const gelu_arguments& arguments) const override;
  void do_add(const add_arguments& arguments) const override;

  stream_handle stream_;
  plan::device_limits limits_;
};

}  // namespace cedar::kernels::cuda
