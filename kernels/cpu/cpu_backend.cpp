// Compiled for the plain baseline: it decides whether the vector code may run.
#include "kernels/cpu/cpu_backend.hpp"

#include <hwy/targets.h>

#include <algorithm>

#include "kernels/base/check.hpp"
#include "kernels/cpu/internal/kernels.hpp"
#include "kernels/cpu/internal/slot_arena.hpp"
#include "kernels/cpu/internal/thread_places.hpp"

namespace cedar::kernels {

namespace {

class cpu_backend final : public backend {
 public:
  cpu_backend(std::uint32_t threads, std::size_t grain, const thread_placement& placement)
      : places_(placement),
        arena_(cpu::slot_arena::make(threads, places_.wanted() ? &places_ : nullptr)),
        grain_(grain) {}

  std::string_view name() const noexcept override { return "cpu"; }

 private:
  void do_rms_norm(const rms_norm_arguments& arguments) const override {
    cpu::rms_norm(arguments, threads());
  }
  void do_quantize_fp8(const quantize_fp8_arguments& arguments) const override {
    cpu::quantize_fp8(arguments, threads());
  }
  void do_rms_norm_quantize(const rms_norm_quantize_arguments& arguments) const override {
    cpu::rms_norm_quantize(arguments, threads());
  }
  void do_linear_fp8(const linear_fp8_arguments& arguments) const override {
    cpu::linear_fp8(arguments, threads());
  }
  void do_linear_fp4(const linear_fp4_arguments& arguments) const override {
    cpu::linear_fp4(arguments, threads());
  }
  void do_linear_fp8_weight_only(const linear_fp8_weight_only_arguments& arguments) const override {
    cpu::linear_fp8_weight_only(arguments, threads());
  }
  void do_linear_bf16(const linear_bf16_arguments& arguments) const override {
    cpu::linear_bf16(arguments, threads());
  }
  void do_linear_f32(const linear_f32_arguments& arguments) const override {
    cpu::linear_f32(arguments, threads());
  }
  void do_grouped_linear_fp8(const grouped_linear_fp8_arguments& arguments) const override {
    cpu::grouped_linear_fp8(arguments, threads());
  }
  void do_grouped_linear_fp4(const grouped_linear_fp4_arguments& arguments) const override {
    cpu::grouped_linear_fp4(arguments, threads());
  }
  void do_grouped_linear_fp8_weight_only(
      const grouped_linear_fp8_weight_only_arguments& arguments) const override {
    cpu::grouped_linear_fp8_weight_only(arguments, threads());
  }
  void do_hc_coefficients(const hc_coefficients_arguments& arguments) const override {
    cpu::hc_coefficients(arguments, threads());
  }
  void do_hc_collapse(const hc_collapse_arguments& arguments) const override {
    cpu::hc_collapse(arguments, threads());
  }
  void do_hc_expand(const hc_expand_arguments& arguments) const override {
    cpu::hc_expand(arguments, threads());
  }
  void do_hc_transition(const hc_transition_arguments& arguments) const override {
    cpu::hc_transition(arguments, threads());
  }
  void do_rope(const rope_arguments& arguments) const override { cpu::rope(arguments, threads()); }
  void do_pack_entries(const pack_entries_arguments& arguments) const override {
    cpu::pack_entries(arguments, threads());
  }
  void do_rms_norm_entries(const rms_norm_entries_arguments& arguments) const override {
    cpu::rms_norm_entries(arguments, threads());
  }
  void do_unpack_entries(const unpack_entries_arguments& arguments) const override {
    cpu::unpack_entries(arguments, threads());
  }
  void do_requantize_entries(const requantize_entries_arguments& arguments) const override {
    cpu::requantize_entries(arguments, threads());
  }
  void do_compressor_pool(const compressor_pool_arguments& arguments) const override {
    cpu::compressor_pool(arguments, threads());
  }
  void do_index_scores(const index_scores_arguments& arguments) const override {
    cpu::index_scores(arguments, threads());
  }
  void do_attention(const attention_arguments& arguments) const override {
    cpu::attention(arguments, threads());
  }
  void do_gate_scores(const gate_scores_arguments& arguments) const override {
    cpu::gate_scores(arguments, threads());
  }
  void do_swiglu(const swiglu_arguments& arguments) const override {
    cpu::swiglu(arguments, threads());
  }
  void do_swiglu_quantize(const swiglu_quantize_arguments& arguments) const override {
    cpu::swiglu_quantize(arguments, threads());
  }
  void do_moe_combine(const moe_combine_arguments& arguments) const override {
    cpu::moe_combine(arguments, threads());
  }
  void do_engram_gate(const engram_gate_arguments& arguments) const override {
    cpu::engram_gate(arguments, threads());
  }
  void do_rope_2d(const rope_2d_arguments& arguments) const override {
    cpu::rope_2d(arguments, threads());
  }
  void do_full_attention(const full_attention_arguments& arguments) const override {
    cpu::full_attention(arguments, threads());
  }
  void do_gelu(const gelu_arguments& arguments) const override { cpu::gelu(arguments, threads()); }
  void do_add(const add_arguments& arguments) const override { cpu::add(arguments, threads()); }

  cpu::workers threads() const {
    if (places_.wanted()) places_.take_this_thread();
    return {arena_.get(), grain_};
  }

  cpu::thread_places places_;

  std::unique_ptr<cpu::slot_arena> arena_;  ///< null: every call runs on its caller's thread
  std::size_t grain_;
};

}  // namespace

bool cpu_backend_supported() {
  return (hwy::SupportedTargets() & HWY_AVX2) != 0;
}

std::unique_ptr<backend> make_cpu_backend(std::uint32_t threads, std::size_t grain,
                                          const thread_placement& placement) {
  CEDAR_REQUIRE(cpu_backend_supported(), "the cpu backend needs a processor of level x86-64-v3");
  CEDAR_REQUIRE(threads >= 1 && threads <= cpu_threads_max, "a backend has 1 to 256 threads");
  CEDAR_REQUIRE(grain > 0, "pieces have a size");
  CEDAR_REQUIRE(std::ranges::includes(usable_processors(), placement.processors),
                "a processor that this process may not use");
  CEDAR_REQUIRE(placement.nice <= 19, "nice values end at 19");
  return std::make_unique<cpu_backend>(threads, grain, placement);
}

}  // namespace cedar::kernels
