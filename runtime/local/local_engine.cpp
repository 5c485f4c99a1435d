#include "runtime/local/local_engine.hpp"

#include <limits>
#include <map>

#include "runtime/model/image_tokens.hpp"
#include "runtime/model/owner_ratios.hpp"
#include "runtime/stage/tap_messages.hpp"

namespace cedar::local {

namespace {

std::uint32_t granule_of(const stage::model_source& source) {
  return memory::default_page_entries * model::ratios_lcm(source.schedule());
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

local_engine::local_engine(const stage::model_source& source, const kernels::backend& backend,
                           const engine_options& options, stage::embedding_stage embedding,
                           stage::engram_stage engram)
    : source_(source),
      backend_(backend),
      options_(options),
      embedding_(std::move(embedding)),
      engram_(std::move(engram)) {
  if (options.draft_policy) policy_.emplace(options.draft_tokens, options.rows_per_step);
}

result<std::unique_ptr<local_engine>> local_engine::open(const stage::model_source& source,
                                                         const kernels::backend& backend,
                                                         const engine_options& options) {
  engine_options used = options;
  if (used.context_max == 0) used.context_max = source.config().max_positions;
  if (used.context_max > source.config().max_positions)
    return fail(errc::invalid_argument,
                "a context of " + std::to_string(used.context_max) + " positions is beyond the " +
                    std::to_string(source.config().max_positions) + " of the model");
  if (used.draft_policy && used.draft_tokens == 0)
    used.draft_tokens = std::max(source.config().dspark.block_size, 1U);
  if (used.draft_tokens >= stage::ring_slack(source.config()))
    return fail(errc::invalid_argument, "drafts of " + std::to_string(used.draft_tokens) +
                                            " tokens are longer than the " +
                                            std::to_string(stage::ring_slack(source.config()) - 1) +
                                            " of the model's drafter");
  auto embedding = source.make_embedding();
  if (!embedding) return fail(embedding.error());
  auto engram = source.make_engram();
  if (!engram) return fail(engram.error());
  std::unique_ptr<local_engine> made(
      new local_engine(source, backend, used, std::move(*embedding), std::move(*engram)));
  if (const result<void> whole = made->renew(); !whole) return fail(whole.error());
  return made;
}

result<void> local_engine::renew() {
  stage::layer_stage_options placed{0, source_.config().layers - 1, options_.requests_max,
                                    options_.context_max};
  if (options_.kv_positions > 0) placed.kv_granules = options_.kv_positions / granule_of(source_);
  placed.prefix_granules = options_.prefix_positions / granule_of(source_);
  if (drafts_itself()) placed.tapped_layers = source_.config().dspark.target_layers;
  auto layers = source_.make_layers(backend_, placed);
  if (!layers) return fail(layers.error());
  auto head = source_.make_head(backend_);
  if (!head) return fail(head.error());
  std::unique_ptr<stage::vision_stage> vision;
  if (source_.config().vision.layers > 0) {
    auto made = source_.make_vision(backend_);
    if (!made) return fail(made.error());
    vision = std::move(*made);
  }
  std::unique_ptr<stage::drafting> drafting;
  if (drafts_itself()) {
    auto drafter = source_.make_drafter(backend_, options_.requests_max);
    if (!drafter) return fail(drafter.error());
    drafting = std::make_unique<stage::drafting>(std::move(*drafter), source_.config());
  }
  layers_ = std::move(*layers);
  head_ = std::move(*head);
  vision_ = std::move(vision);
  drafting_ = std::move(drafting);
  return {};
}

session::scheduler_limits local_engine::scheduler_limits(std::uint32_t queue_max) const {
  session::scheduler_limits limits{
      .rows_per_step = options_.rows_per_step,
      .requests_max = options_.requests_max,
      .queue_max = queue_max,
      .context_max = options_.context_max,
      .steps_in_flight = 1,
      .vocabulary = source_.config().vocabulary,
      .lookback = source_.config().engram_lookback(),
      .eos_tokens = source_.config().eos_tokens,
      .image_token = model::image_token_of(source_.config()),
      .window = source_.config().window,
      .encoder_layers = source_.schedule().decoder_begin(),
      .decoder_layers = source_.schedule().decoder_layers(),
  };
  limits.kv_granule = granule_of(source_);
  if (options_.kv_positions > 0) limits.kv_granules = options_.kv_positions / limits.kv_granule;
  limits.prefix_granules = options_.prefix_positions / limits.kv_granule;
  limits.prefix_step = model::ratios_lcm(source_.schedule());
  limits.draft_tokens_max = options_.draft_tokens;
  if (vision_) limits.images = vision::rules_of(source_.config().vision);
  return limits;
}

result<void> local_engine::add_images(std::span<const flow::request_image> images) {
  if (!images.empty() && !vision_)
    return fail(errc::invalid_argument, "the model has no vision tower: it reads no images");
  for (const flow::request_image& image : images)
    if (const result<void> added = vision_->add(image); !added) return added;
  return {};
}

result<flow::proposal> local_engine::run(const flow::step_table& table,
                                         const std::function<void(flow::tap)>& on_tap,
                                         const stage::selection_overrides& overrides) {
  step_began_ = std::chrono::steady_clock::now();
  const model::taps probes = stage::probes_of(table, on_tap);
  result<kernels::matrix_buffer<kernels::bf16>> images;
  if (vision_) images = vision_->run(table);
  if (!images) return fail(images.error());
  auto embedded = embedding_.run(table, std::as_const(*images).view());
  if (!embedded) return fail(embedded.error());
  auto engram = engram_.run(table);
  if (!engram) return fail(engram.error());
  const auto made =
      layers_->begin({table, std::move(*embedded), std::move(*engram), {}, {}}, probes, overrides);
  if (!made) return fail(made.error());
  if (drafting_)
    if (const auto followed = drafting_->extend(table, *made); !followed)
      return fail(followed.error());
  return head_->run(table, made->back(), probes);
}

void local_engine::apply(const flow::verdict& verdict) {
  const result<void> applied = layers_->apply(verdict);
  CEDAR_ASSERT(applied.has_value(), "no step of a local engine is ever suspended");
  head_->apply(verdict);
  if (vision_) vision_->apply(verdict);
  if (drafting_) {
    const result<void> followed = drafting_->apply(verdict);
    CEDAR_ASSERT(followed.has_value(), "a verdict takes back no more than a draft");
  }
  if (policy_) policy_->step_took(seconds_since(step_began_));
}

result<void> local_engine::offer_drafts(session::step_scheduler& scheduler,
                                        const flow::step_table& table,
                                        const session::step_outcome& outcome) {
  if (options_.draft_tokens == 0) return {};
  const auto began = std::chrono::steady_clock::now();
  const auto drafts = options_.drafter != nullptr ? options_.drafter->draft_after(table, outcome)
                                                  : drafting_->run(outcome.orders);
  if (!drafts) return fail(drafts.error());
  for (const flow::draft& one : *drafts)
    if (const result<void> taken = scheduler.offer(one); !taken) return taken;
  if (policy_ && !outcome.orders.empty())
    policy_->drafts_took(static_cast<std::uint32_t>(outcome.orders.size()), seconds_since(began));
  return {};
}

result<session::measured_costs> local_engine::measure_costs() {
  if (!policy_ || !drafting_) return session::measured_costs{};
  session::cost_measurement measurement(scheduler_limits(1), epoch_id{}, *policy_);
  while (const auto table = measurement.next_step())
    if (const result<void> ran = run_measured(measurement, *table); !ran) return fail(ran.error());
  if (const result<void> renewed = renew(); !renewed) return fail(renewed.error());
  return measurement.measured();
}

result<void> local_engine::run_measured(session::cost_measurement& measurement,
                                        const flow::step_table& table) {
  const result<flow::proposal> proposal = run(table, {});
  if (!proposal) return fail(proposal.error());
  const result<session::step_outcome> outcome = measurement.accept(*proposal);
  if (!outcome) return fail(outcome.error());
  apply(outcome->verdict);
  measurement.step_took(seconds_since(step_began_));
  if (outcome->orders.empty()) return {};
  const auto began = std::chrono::steady_clock::now();
  if (const auto drafts = drafting_->run(outcome->orders); !drafts) return fail(drafts.error());
  measurement.drafts_took(seconds_since(began));
  return {};
}

result<std::vector<session::usage>> local_engine::generate(
    const std::vector<session::generation_request>& requests,
    const session::generation_sink& sink) {
  if (scheduler_ && scheduler_->requests() > 0) {  // what a call that failed has left
    if (const result<void> renewed = renew(); !renewed) return fail(renewed.error());
    scheduler_.reset();
  }
  if (!scheduler_)
    scheduler_.emplace(scheduler_limits(std::numeric_limits<std::uint32_t>::max()), policy());
  return run_all(requests, sink);
}

result<std::vector<session::usage>> local_engine::run_all(
    const std::vector<session::generation_request>& requests,
    const session::generation_sink& sink) {
  session::step_scheduler& scheduler = *scheduler_;
  const auto ids = scheduler.submit(requests);
  if (!ids) return fail(ids.error());
  std::map<request_id, std::size_t> index_of;
  for (std::size_t i = 0; i < ids->size(); ++i) index_of.emplace((*ids)[i], i);
  std::vector<session::usage> used(requests.size());
  while (const auto table = scheduler.next_step()) {
    if (const auto added = add_images(scheduler.beginning_images()); !added)
      return fail(added.error());
    const result<flow::proposal> proposal = run(*table, sink.on_tap);
    if (!proposal) return fail(proposal.error());
    const result<session::step_outcome> outcome = scheduler.accept(*proposal);
    if (!outcome) return fail(outcome.error());
    apply(outcome->verdict);
    for (const session::row_event& event : outcome->events) {
      const std::size_t index = index_of.at(event.request);
      if (event.finish != session::finish_reason::none)
        used[index] = *scheduler.usage_of(event.request);
      if (sink.on_row) sink.on_row(index, event);
    }
    if (const auto drafted = offer_drafts(scheduler, *table, *outcome); !drafted)
      return fail(drafted.error());
  }
  return used;
}

cache_bytes local_engine::caches() const noexcept {
  cache_bytes out = layers_->caches();
  if (drafting_) out.rings += drafting_->caches().rings;
  return out;
}

}  // namespace cedar::local
