// A backend that hands every call to another one and notes what it took: for benches, never for
// serving.
//
// 1. Results are those of the other backend. 2. Calls, time and bytes are counted by operation; the
// time from one call's end to the next one's beginning by the two of them: that is what the caller
// did in between. 3. For one calling thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/ops/backend.hpp"

namespace cedar::tools {

struct operation_time {
  std::uint64_t calls = 0;
  double seconds = 0;
  double bytes = 0;
};

class timed_backend final : public kernels::backend {
 public:
  /// Seconds since any time, never less than before.
  using clock = std::function<double()>;

  /// `other` must outlive it.
  explicit timed_backend(const kernels::backend& other, clock now = wall);

  std::string_view name() const noexcept override { return other_.name(); }

  /// What the caller does before its next call is not counted.
  void pause() noexcept { last_.reset(); }
  /// Forgets everything, and pauses.
  void reset();
  /// Those that were called, by name.
  std::map<std::string, operation_time> operations() const;
  /// Keyed by the operations before and after; calls: how often.
  std::map<std::pair<std::string, std::string>, operation_time> between() const;
  double seconds_in_operations() const;

 private:
  static double wall();

  template <class Arguments, class Call>
  void timed(std::size_t operation, const Arguments& arguments, const Call& call) const;

  void do_rms_norm(const kernels::rms_norm_arguments& arguments) const override;
  void do_quantize_fp8(const kernels::quantize_fp8_arguments& arguments) const override;
  void do_rms_norm_quantize(const kernels::rms_norm_quantize_arguments& arguments) const override;
  void do_linear_fp8(const kernels::linear_fp8_arguments& arguments) const override;
  void do_linear_fp4(const kernels::linear_fp4_arguments& arguments) const override;
  void do_linear_fp8_weight_only(
      const kernels::linear_fp8_weight_only_arguments& arguments) const override;
  void do_linear_bf16(const kernels::linear_bf16_arguments& arguments) const override;
  void do_linear_f32(const kernels::linear_f32_arguments& arguments) const override;
  void do_grouped_linear_fp8(const kernels::grouped_linear_fp8_arguments& arguments) const override;
  void do_grouped_linear_fp4(const kernels::grouped_linear_fp4_arguments& arguments) const override;
  void do_grouped_linear_fp8_weight_only(
      const kernels::grouped_linear_fp8_weight_only_arguments& arguments) const override;
  void do_hc_coefficients(const kernels::hc_coefficients_arguments& arguments) const override;
  void do_hc_collapse(const kernels::hc_collapse_arguments& arguments) const override;
  void do_hc_expand(const kernels::hc_expand_arguments& arguments) const override;
  void do_hc_transition(const kernels::hc_transition_arguments& arguments) const override;
  void do_rope(const kernels::rope_arguments& arguments) const override;
  void do_pack_entries(const kernels::pack_entries_arguments& arguments) const override;
  void do_rms_norm_entries(const kernels::rms_norm_entries_arguments& arguments) const override;
  void do_unpack_entries(const kernels::unpack_entries_arguments& arguments) const override;
  void do_requantize_entries(const kernels::requantize_entries_arguments& arguments) const override;
  void do_compressor_pool(const kernels::compressor_pool_arguments& arguments) const override;
  void do_index_scores(const kernels::index_scores_arguments& arguments) const override;
  void do_attention(const kernels::attention_arguments& arguments) const override;
  void do_gate_scores(const kernels::gate_scores_arguments& arguments) const override;
  void do_swiglu(const kernels::swiglu_arguments& arguments) const override;
  void do_swiglu_quantize(const kernels::swiglu_quantize_arguments& arguments) const override;
  void do_moe_combine(const kernels::moe_combine_arguments& arguments) const override;
  void do_engram_gate(const kernels::engram_gate_arguments& arguments) const override;
  void do_rope_2d(const kernels::rope_2d_arguments& arguments) const override;
  void do_full_attention(const kernels::full_attention_arguments& arguments) const override;
  void do_gelu(const kernels::gelu_arguments& arguments) const override;
  void do_add(const kernels::add_arguments& arguments) const override;

  const kernels::backend& other_;
  clock now_;
  // By number: what is noted must cost little beside operations of a microsecond.
  mutable std::vector<operation_time> operations_;
  mutable std::vector<operation_time> between_;  ///< row after row: before, after
  mutable std::optional<std::size_t> last_;  ///< the operation before; none since pause()
  mutable double last_end_ = 0;
};

/// Largest first.
std::vector<std::pair<std::string, operation_time>> by_time(
    const std::map<std::string, operation_time>& operations);
/// The same of what lies between, as "a -> b".
std::vector<std::pair<std::string, operation_time>> by_time(
    const std::map<std::pair<std::string, std::string>, operation_time>& between);

}  // namespace cedar::tools
