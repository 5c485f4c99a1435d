// Compiled for the plain baseline: it decides whether the vector code may run.
#include "kernels/cpu/cpu_backend.hpp"

#include "kernels/base/check.hpp"
#include "kernels/cpu/internal/kernels.hpp"

namespace cedar::kernels {

namespace {

class cpu_backend final : public backend {
 public:
  std::string_view name() const noexcept override { return "cpu"; }

 private:
  void do_rms_norm(const rms_norm_arguments& arguments) const override { cpu::rms_norm(arguments); }
  void do_quantize_fp8(const quantize_fp8_arguments& arguments) const override {
    cpu::quantize_fp8(arguments);
  }
  void do_linear_fp8(const linear_fp8_arguments& arguments) const override {
    cpu::linear_fp8(arguments);
  }
  void do_linear_fp4(const linear_fp4_arguments& arguments) const override {
    cpu::linear_fp4(arguments);
  }
  void do_linear_fp8_weight_only(const linear_fp8_weight_only_arguments& arguments) const override {
    cpu::linear_fp8_weight_only(arguments);
  }
  void do_linear_bf16(const linear_bf16_arguments& arguments) const override {
    cpu::linear_bf16(arguments);
  }
  void do_linear_f32(const linear_f32_arguments& arguments) const override {
    cpu::linear_f32(arguments);
  }
  void do_hc_coefficients(const hc_coefficients_arguments& arguments) const override {
    cpu::hc_coefficients(arguments);
  }
  void do_hc_collapse(const hc_collapse_arguments& arguments) const override {
    cpu::hc_collapse(arguments);
  }
  void do_hc_expand(const hc_expand_arguments& arguments) const override {
    cpu::hc_expand(arguments);
  }
  void do_rope(const rope_arguments& arguments) const override { cpu::rope(arguments); }
  void do_pack_entries(const pack_entries_arguments& arguments) const override {
    cpu::pack_entries(arguments);
  }
  void do_unpack_entries(const unpack_entries_arguments& arguments) const override {
    cpu::unpack_entries(arguments);
  }
  void do_compressor_pool(const compressor_pool_arguments& arguments) const override {
    cpu::compressor_pool(arguments);
  }
  void do_index_scores(const index_scores_arguments& arguments) const override {
    cpu::index_scores(arguments);
  }
  void do_attention(const attention_arguments& arguments) const override {
    cpu::attention(arguments);
  }
  void do_gate_scores(const gate_scores_arguments& arguments) const override {
    cpu::gate_scores(arguments);
  }
  void do_swiglu(const swiglu_arguments& arguments) const override { cpu::swiglu(arguments); }
  void do_moe_combine(const moe_combine_arguments& arguments) const override {
    cpu::moe_combine(arguments);
  }
  void do_engram_gate(const engram_gate_arguments& arguments) const override {
    cpu::engram_gate(arguments);
  }
};

}  // namespace

bool cpu_backend_supported() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("f16c") != 0 && __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("lzcnt") != 0 &&
         __builtin_cpu_supports("movbe") != 0;
}

std::unique_ptr<backend> make_cpu_backend() {
  CEDAR_REQUIRE(cpu_backend_supported(), "the cpu backend needs a processor of level x86-64-v3");
  return std::make_unique<cpu_backend>();
}

}  // namespace cedar::kernels
