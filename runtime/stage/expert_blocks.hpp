// Blocks between a stage and the slices of its layers' routed experts (flow::row_kind names them).
//
// A slice gets each row once, with all of its experts that the row chose. Everything that arrives
// is checked before it is used: at the slice the layer, the layout, ids and weights; at the stage
// that the answer is one to what was asked.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/expert_slice.hpp"
#include "runtime/model/moe.hpp"

namespace cedar::stage {

/// Planes of an expert_rows block.
template <class Id, class Weight, class Code>
struct expert_planes {
  kernels::matrix_view<Id> experts;  ///< [rows, k]: ids ascending, then -1
  kernels::matrix_view<Weight> weights;  ///< [rows, k], of the routes
  kernels::matrix_view<Code> codes;  ///< [rows, d]
  kernels::matrix_view<Code> scales;  ///< [rows, d / 32]
};
using expert_planes_view = expert_planes<const std::int32_t, const float, const std::uint8_t>;

/// What a stage that begins with layer `reader` asks of a slice: the rows x [n, d] of `layer` that
/// chose some of its experts. Nothing if none did.
std::optional<flow::row_block> make_expert_rows(const model::model_config& config,
                                                const flow::step_table& table, std::uint32_t layer,
                                                std::uint32_t reader,
                                                const model::expert_slice& slice,
                                                const model::opened_moe& opened,
                                                const model::quantized_rows& x);

/// Valid while the block lives. Error malformed: not rows that chose experts of the slice.
result<expert_planes_view> expert_rows_of(const flow::row_block& block,
                                          const model::model_config& config,
                                          const model::expert_slice& slice);

/// What the experts of one MoE sublayer that are elsewhere give, while a step waits for it.
class awaited_experts {
 public:
  /// References that outlive it.
  awaited_experts(const model::model_config& config, std::span<const model::expert_slice> slices,
                  std::uint32_t reader)
      : config_(config), slices_(slices), reader_(reader) {}

  /// Appends a request to each slice of the layer that has an expert that some row x [n, d] chose.
  void ask(const flow::step_table& table, std::uint32_t layer, const model::opened_moe& opened,
           const model::quantized_rows& x, std::vector<flow::row_block>& out);
  bool any() const noexcept { return !asked_.empty(); }

  /// Puts the outputs of an answer; its bytes live until release(). Error malformed: not an answer
  /// to what is asked.
  result<void> take(const flow::row_block& answer, const model::opened_moe& opened);

  /// The sublayer is closed.
  void release() { payloads_.clear(); }

 private:
  struct question {
    const model::expert_slice* slice;
    flow::row_block request;  ///< without its rows
  };

  const model::model_config& config_;
  std::span<const model::expert_slice> slices_;
  std::uint32_t reader_;
  std::vector<question> asked_;
  std::vector<flow::payload_ref> payloads_;
};

}  // namespace cedar::stage
