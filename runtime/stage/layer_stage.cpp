#include "runtime/stage/layer_stage.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"
#include "runtime/model/compressor.hpp"
#include "runtime/model/owner_ratios.hpp"
#include "runtime/stage/row_layout.hpp"
#include "runtime/stage/shared_blocks.hpp"

namespace cedar::stage {

using flow::row_kind;

namespace {

std::string step_text(step_id step) {
  return "step " + std::to_string(step.value);
}

}  // namespace

memory::page_layout page_layout_of(const model::model_config& config, bool entries, bool keys) {
  return {memory::default_page_entries,
          entries ? kernels::entry_bytes(model::global_entry_format, config.head_dim) : 0,
          keys ? kernels::entry_bytes(model::index_entry_format, config.index_head_dim) : 0};
}

page_counts pages_needed(const model::schedule& schedule, const layer_stage_options& options) {
  const std::uint64_t lcm = model::ratios_lcm(schedule);
  const auto pages_of = [&](std::uint32_t owner) -> std::size_t {
    const std::size_t entries = options.context_max / schedule[owner].ratio;
    const std::size_t per_page = memory::default_page_entries;
    const std::uint64_t pages_of_granule = lcm / schedule[owner].ratio;
    const std::size_t most = options.requests_max * ((entries + per_page - 1) / per_page) +
                             options.prefix_granules * pages_of_granule;
    // Divided, not multiplied: a budget may be as good as none.
    if (!options.kv_granules || *options.kv_granules > most / pages_of_granule) return most;
    return *options.kv_granules * pages_of_granule;
  };
  page_counts pages;
  for (std::uint32_t layer = options.first_layer; layer <= options.last_layer; ++layer)
    if (schedule[layer].mode == model::layer_mode::full) {
      const bool keys_elsewhere =
          std::ranges::count(options.indexers, layer, &model::index_shard::owner) > 0;
      (keys_elsewhere ? pages.entries : pages.whole) += pages_of(layer);
    }
  const auto& keys = options.imports.index_keys;
  for (const std::uint32_t owner : options.imports.entries)
    (std::ranges::binary_search(keys, owner) ? pages.whole : pages.entries) += pages_of(owner);
  for (const std::uint32_t owner : keys)
    if (!std::ranges::binary_search(options.imports.entries, owner)) pages.keys += pages_of(owner);
  return pages;
}

layer_stage::layer_stage(const kernels::backend& backend, const model::model_config& config,
                         const model::schedule& schedule, std::vector<model::layer_weights> layers,
                         const layer_stage_options& options)
    : backend_(backend),
      config_(config),
      schedule_(schedule),
      layers_(std::move(layers)),
      options_(options),
      rotary_(model::make_rotary(config)),
      pools_{{page_layout_of(config, true, true), pages_needed(schedule, options).whole},
             {page_layout_of(config, true, false), pages_needed(schedule, options).entries},
             {page_layout_of(config, false, true), pages_needed(schedule, options).keys}},
      sequences_({options.requests_max, options.context_max,
                  memory::default_page_entries * model::ratios_lcm(schedule)},
                 [this] { return new_sequence(); }) {
  CEDAR_REQUIRE(layers_.size() == options.last_layer - options.first_layer + 1,
                "a stage needs the weights of each of its layers");
}

std::vector<std::uint32_t> layer_stage::engram_layers() const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t layer = options_.first_layer; layer <= options_.last_layer; ++layer)
    if (schedule_[layer].engram) out.push_back(layer);
  return out;
}

std::vector<shared_input> layer_stage::engram_inputs() const {
  std::vector<shared_input> out;
  for (const std::uint32_t layer : engram_layers()) {
    const std::size_t before = out.size();
    for (const model::engram_shard& shard : options_.engram_shards)
      if (shard.layer == layer) out.push_back({row_kind::engram_slots, layer, shard.number});
    if (out.size() == before) out.push_back({row_kind::engram_rows, layer});
  }
  return out;
}

std::vector<shared_input> layer_stage::shared_inputs() const {
  std::vector<shared_input> out;
  const auto add = [&out](row_kind kind, const std::vector<std::uint32_t>& layers) {
    for (const std::uint32_t layer : layers) out.push_back({kind, layer});
  };
  add(row_kind::shared_kv, options_.imports.entries);
  add(row_kind::index_keys, options_.imports.index_keys);
  add(row_kind::selection, options_.imports.selections);
  add(row_kind::candidates, options_.imports.candidates);
  return out;
}

sequence_state layer_stage::new_sequence() {
  return {config_,          schedule_, options_.first_layer,   options_.last_layer,
          options_.imports, pools_,    options_.tapped_layers, options_.indexers};
}

cache_bytes layer_stage::caches() const noexcept {
  return {pools_.bytes_in_use(), sequences_.kept_bytes(), sequences_.ring_bytes()};
}

/// Creates the states of new requests, takes the pages of all rows and moves their lengths.
result<step_rows> layer_stage::open_rows(const joined_step& step) {
  step_rows rows;
  for (const flow::row_span& span : step.table.spans) {
    const auto sequence = sequences_.open(step.table, span);
    if (!sequence) return fail(sequence.error());
    rows.spans.push_back({span, rows.positions.size(), *sequence});
    for (std::uint32_t i = 0; i < span.rows_count; ++i)
      rows.positions.push_back(static_cast<std::int32_t>(span.first_position + i));
  }
  for (const flow::row_block& block : step.engram)
    rows.engram[block.layer] = {flow::bytes_of(block.payload).data(), block.rows_count,
                                block.row_bytes};
  return rows;
}

/// Appends what owners elsewhere made to the replicas, and notes what sources elsewhere chose.
result<void> layer_stage::import_shared(const joined_step& step, const step_rows& rows) {
  const shared_context c{config_, schedule_};
  selections_.gathered.reset();
  struct new_entries {
    kernels::matrix_view<const std::byte> main;
    kernels::matrix_view<const std::byte> keys;
  };
  std::map<std::uint32_t, new_entries> by_owner;
  for (const flow::row_block& block : step.shared) {
    if (block.kind == row_kind::selection) {
      auto chosen = selection_of(block, c);
      if (!chosen) return fail(chosen.error());
      selections_.by_source[block.layer] = std::move(*chosen);
    } else if (block.kind == row_kind::candidates) {
      auto pools = candidates_of(block, c);
      if (!pools) return fail(pools.error());
      selections_.candidates = std::move(*pools);
    } else {
      const auto entries = entries_of(block, c);
      if (!entries) return fail(entries.error());
      new_entries& made = by_owner[block.layer];
      (block.kind == row_kind::shared_kv ? made.main : made.keys) = *entries;
    }
  }
  for (auto& [owner, made] : by_owner) {
    // A replica without keys, or without main entries, has rows of no bytes there.
    if (made.main.cols == 0) made.main = {made.keys.data, made.keys.rows, 0};
    if (made.keys.cols == 0) made.keys = {made.main.data, made.main.rows, 0};
    std::size_t first = 0;
    for (const span_rows& span : rows.spans) {
      const std::size_t count = span.span.entries_count(schedule_[owner].ratio);
      const auto appended = span.sequence->global(owner).append(made.main.rows_from(first, count),
                                                                made.keys.rows_from(first, count));
      if (!appended) return fail(appended.error());
      first += count;
    }
  }
  return {};
}

result<std::vector<flow::row_block>> layer_stage::begin(joined_step step, const model::taps& probes,
                                                        const selection_overrides& overrides) {
  CEDAR_REQUIRE(!suspended(), "a stage runs one step at a time");
  const step_id id = step.table.step;
  sequences_.drop(step.table.dropped);
  if (const result<void> joined = join_engram(step); !joined) return fail(joined.error());
  if (const result<void> checked = check_inputs(step); !checked) return fail(checked.error());
  if (const result<void> checked = sequences_.check(step.table); !checked)
    return fail(checked.error().with(step_text(id)));
  auto rows = open_rows(step);
  result<void> imported;
  if (rows) imported = import_shared(step, *rows);
  if (!rows || !imported) {
    sequences_.take_back(step.table);
    return fail((rows ? imported.error() : rows.error()).with(step_text(id)));
  }
  scratch_.reset();
  const stage_parts parts{backend_,
                          config_,
                          schedule_,
                          rotary_,
                          layers_,
                          options_.first_layer,
                          options_.last_layer,
                          options_.imports,
                          options_.exports,
                          options_.tapped_layers,
                          options_.experts_elsewhere,
                          options_.indexers};
  step_ = std::make_unique<stage_step>(parts, scratch_, std::move(step), std::move(*rows),
                                       selections_, overrides);
  return advance(probes);
}

result<std::vector<flow::row_block>> layer_stage::resume(const flow::row_block& answer,
                                                         const model::taps& probes) {
  if (!suspended())
    return fail(errc::malformed, step_text(answer.step) + ": an answer without request");
  if (const auto given = step_->give(answer); !given) return fail(given.error());
  if (!step_->can_advance()) return std::vector<flow::row_block>{};
  return advance(probes);
}

result<std::vector<flow::row_block>> layer_stage::go_on(const model::taps& probes) {
  CEDAR_REQUIRE(can_go_on(), "a step that waits, or none, cannot go on");
  return advance(probes);
}

/// A step that is done, or has failed, is gone afterwards.
result<std::vector<flow::row_block>> layer_stage::advance(const model::taps& probes) {
  std::vector<flow::row_block> out;
  const result<void> ran = step_->advance(probes, out);
  if (ran && !step_->done()) return out;
  const std::unique_ptr<stage_step> ended = std::move(step_);
  if (ran) return out;
  sequences_.take_back(ended->table());
  return fail(ran.error().with(step_text(ended->table().step)));
}

result<flow::row_block> layer_stage::run(const flow::step_table& table,
                                         const flow::row_block& input,
                                         std::span<const flow::row_block> engram,
                                         const model::taps& probes,
                                         const selection_overrides& overrides) {
  CEDAR_REQUIRE(
      options_.imports.empty() && options_.experts_elsewhere.empty() && options_.indexers.empty(),
      "a stage that needs others is driven by begin()");
  auto made = begin({table, input, {engram.begin(), engram.end()}, {}, {}}, probes, overrides);
  if (!made) return fail(made.error());
  return std::move(made->back());
}

result<flow::row_block> layer_stage::answer(const flow::row_block& request) {
  const std::uint32_t owner = request.layer;
  const std::string text =
      step_text(request.step) + ": request for entries of layer " + std::to_string(owner);
  if (request.kind != row_kind::gather_request ||
      !std::ranges::binary_search(options_.exports.gathered, owner))
    return fail(errc::malformed, text + ": this stage does not answer it");
  const auto asked = selection_of(request, {config_, schedule_});
  if (!asked) return fail(asked.error());
  std::size_t count = 0;
  for (const auto& positions : *asked) count += positions.size();
  const std::size_t bytes = row_bytes(row_kind::gathered, config_);
  kernels::buffer memory(count * bytes);
  std::byte* out = memory.data();
  std::size_t row = 0;
  for (const flow::row_span& span : request.spans) {
    sequence_state* const found = sequences_.find(span.request);
    if (found == nullptr)
      return fail(errc::mismatch,
                  text + ": request " + std::to_string(span.request.value) + " is unknown here");
    const memory::global_cache& cache = found->global(owner);
    const std::uint32_t rows =
        owner < schedule_.decoder_begin() ? span.rows_count : span.decoder_count();
    for (const std::size_t end = row + rows; row < end; ++row)
      for (const std::uint32_t position : (*asked)[row]) {
        if (position >= cache.written())
          return fail(errc::mismatch, text + ": entry " + std::to_string(position) + " of " +
                                          std::to_string(cache.written()));
        out = std::copy_n(cache.main_entry(position), bytes, out);
      }
  }
  return answer_block(row_kind::gathered, request, config_, std::move(memory));
}

result<void> layer_stage::apply(const flow::verdict& verdict) {
  for (const flow::commitment& commitment : verdict.commitments)
    if (suspended() && commitment.finished &&
        std::ranges::count(step_->table().spans, commitment.request, &flow::row_span::request) > 0)
      return fail(errc::mismatch, step_text(verdict.step) + ": the verdict frees request " +
                                      std::to_string(commitment.request.value) +
                                      ", whose rows are being computed");
  return sequences_.apply(verdict);
}

}  // namespace cedar::stage
