// The whole model in one process and one thread, as direct calls: the single-process runner, and
// the oracle that every placement is compared with.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "kernels/base/check.hpp"
#include "runtime/session/cost_measurement.hpp"
#include "runtime/session/drafter.hpp"
#include "runtime/session/generator.hpp"
#include "runtime/session/step_scheduler.hpp"
#include "runtime/stage/drafting.hpp"
#include "runtime/stage/model_source.hpp"

namespace cedar::local {

struct engine_options {
  std::uint32_t rows_per_step = 128;
  std::uint32_t requests_max = 16;
  std::uint32_t context_max = 0;  ///< 0: the model's max_positions
  std::uint64_t kv_positions = 0;  ///< of requests and prefixes together; 0: enough for all
  std::uint64_t prefix_positions = 0;  ///< that are kept after their requests; 0: none
  std::uint32_t draft_tokens = 0;  ///< in one span at most; 0: nobody drafts
  /// Of them, verify what pays (session::draft_policy), not all; 0 then: what the drafter proposes.
  bool draft_policy = false;
  session::drafter* drafter = nullptr;  ///< instead of the model's own; must outlive the engine
};

/// vision, embedding -> engram -> all layers -> head.
class local_engine final : public session::generator {
 public:
  /// `source` and `backend` must outlive the engine. Errors: those of model_source's factories;
  /// invalid_argument: options beyond the model; not_found: it has no drafter.
  static result<std::unique_ptr<local_engine>> open(const stage::model_source& source,
                                                    const kernels::backend& backend,
                                                    const engine_options& options);

  /// Measures what steps and drafts cost, for the policy; nothing without options.draft_policy, or
  /// where the model's drafter does not draft. Before the first request: everything that holds
  /// state is made anew afterwards. Takes about session::cost_measurement::seconds_max at most.
  /// Errors: those of a step, and of renew().
  result<session::measured_costs> measure_costs();

  /// What earlier calls left in the prefix store serves later ones; an error empties it.
  result<std::vector<session::usage>> generate(
      const std::vector<session::generation_request>& requests,
      const session::generation_sink& sink) override;

  /// For a scheduler whose steps run() takes, with a queue of `queue_max` requests.
  session::scheduler_limits scheduler_limits(std::uint32_t queue_max) const;

  /// Images of requests, before the step with their first row (step_scheduler::beginning_images).
  /// Errors: those of vision_stage::add; invalid_argument: the model has no vision tower.
  result<void> add_images(std::span<const flow::request_image> images);
  /// One step, for callers that build their own. Taps that the step names go to `on_tap`.
  result<flow::proposal> run(const flow::step_table& table,
                             const std::function<void(flow::tap)>& on_tap,
                             const stage::selection_overrides& overrides = {});
  void apply(const flow::verdict& verdict);
  /// After apply() of the outcome of `table`: gives the scheduler the drafts that it ordered.
  /// Errors: those of whoever drafts.
  result<void> offer_drafts(session::step_scheduler& scheduler, const flow::step_table& table,
                            const session::step_outcome& outcome);

  /// Makes what holds state anew, as open() did: all requests are forgotten, weights stay mapped.
  /// For who goes on after a step that failed. Errors: those of model_source's factories; then the
  /// engine is as it was.
  result<void> renew();

  const stage::layer_stage& layers() const noexcept { return *layers_; }
  /// What it holds for requests and kept prefixes.
  cache_bytes caches() const noexcept;
  /// For schedulers of this engine's steps, whose times it takes from run() to apply(); nullptr
  /// without options.draft_policy. What it has learnt outlives renew().
  session::draft_policy* policy() noexcept { return policy_ ? &*policy_ : nullptr; }
  /// Embeddings of images that are kept for requests that run.
  std::size_t image_rows_held() const noexcept { return vision_ ? vision_->rows_held() : 0; }

 private:
  local_engine(const stage::model_source& source, const kernels::backend& backend,
               const engine_options& options, stage::embedding_stage embedding,
               stage::engram_stage engram);

  bool drafts_itself() const noexcept {
    return options_.draft_tokens > 0 && options_.drafter == nullptr;
  }
  result<void> run_measured(session::cost_measurement& measurement, const flow::step_table& table);
  result<std::vector<session::usage>> run_all(
      const std::vector<session::generation_request>& requests,
      const session::generation_sink& sink);

  const stage::model_source& source_;
  const kernels::backend& backend_;
  engine_options options_;
  stage::embedding_stage embedding_;
  stage::engram_stage engram_;
  std::unique_ptr<stage::layer_stage> layers_;
  std::unique_ptr<stage::head_stage> head_;
  std::unique_ptr<stage::vision_stage> vision_;  ///< null: the model has no vision tower
  std::unique_ptr<stage::drafting> drafting_;  ///< null: the model's own drafter does not draft
  std::optional<session::step_scheduler> scheduler_;  ///< of generate(), once it was called
  std::optional<session::draft_policy> policy_;
  std::chrono::steady_clock::time_point step_began_;
};

}  // namespace cedar::local
