// The registry of this program (kernels/registry/registry.hpp): the device's backend alone,
// emulated. So the cases of tests/numeric/kernels run on it as they are.
#include "kernels/base/check.hpp"
#include "kernels/cuda/launch/cuda_backend.hpp"
#include "kernels/registry/registry.hpp"

namespace cedar::kernels {

namespace {

[[noreturn]] void refuse(const char* operation) {
  throw defect(std::string(operation) + " has no kernel for devices");
}

/// Operations without a kernel; no case of this program calls them.
class emulated_backend final : public cuda::cuda_backend {
 public:
  using cuda::cuda_backend::cuda_backend;

 private:
  void do_hc_coefficients(const hc_coefficients_arguments&) const override {
    refuse("hc_coefficients");
  }
  void do_hc_collapse(const hc_collapse_arguments&) const override { refuse("hc_collapse"); }
  void do_hc_expand(const hc_expand_arguments&) const override { refuse("hc_expand"); }
  void do_hc_transition(const hc_transition_arguments&) const override { refuse("hc_transition"); }
  void do_rope(const rope_arguments&) const override { refuse("rope"); }
  void do_pack_entries(const pack_entries_arguments&) const override { refuse("pack_entries"); }
  void do_unpack_entries(const unpack_entries_arguments&) const override {
    refuse("unpack_entries");
  }
  void do_requantize_entries(const requantize_entries_arguments&) const override {
    refuse("requantize_entries");
  }
  void do_compressor_pool(const compressor_pool_arguments&) const override {
    refuse("compressor_pool");
  }
  void do_index_scores(const index_scores_arguments&) const override { refuse("index_scores"); }
  void do_attention(const attention_arguments&) const override { refuse("attention"); }
  void do_engram_gate(const engram_gate_arguments&) const override { refuse("engram_gate"); }
  void do_rope_2d(const rope_2d_arguments&) const override { refuse("rope_2d"); }
  void do_full_attention(const full_attention_arguments&) const override {
    refuse("full_attention");
  }
  void do_gelu(const gelu_arguments&) const override { refuse("gelu"); }
  void do_add(const add_arguments&) const override { refuse("add"); }
};

}  // namespace

std::vector<std::string_view> backend_names() {
  return {"cuda"};
}

std::unique_ptr<backend> make_backend(std::string_view name, const backend_options&) {
  if (name != "cuda") return nullptr;
  return std::make_unique<emulated_backend>(cuda::stream_handle{});
}

}  // namespace cedar::kernels
