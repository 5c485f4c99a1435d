#include "runtime/stage/layer_stage.hpp"

#include <algorithm>
#include <unordered_set>

#include "kernels/base/check.hpp"
#include "runtime/model/compressor.hpp"
#include "runtime/stage/layer_runner.hpp"

namespace cedar::stage {

using flow::row_kind;
using kernels::bf16;
using kernels::matrix_view;

namespace {

memory::page_layout page_layout_of(const model::model_config& config) {
  return {memory::default_page_entries,
          kernels::entry_bytes(model::global_entry_format, config.head_dim),
          kernels::entry_bytes(model::index_entry_format, config.index_head_dim)};
}

std::string step_text(step_id step) {
  return "step " + std::to_string(step.value);
}

}  // namespace

std::size_t pages_needed(const model::model_config& config, const model::schedule& schedule,
                         const layer_stage_options& options) {
  std::size_t pages = 0;
  for (std::uint32_t layer = options.first_layer; layer <= options.last_layer; ++layer) {
    if (schedule[layer].mode != model::layer_mode::full) continue;
    const std::size_t entries = options.context_max / schedule[layer].ratio;
    const std::size_t per_page = page_layout_of(config).page_entries;
    pages += options.requests_max * ((entries + per_page - 1) / per_page);
  }
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
      pool_(page_layout_of(config), pages_needed(config, schedule, options)) {
  CEDAR_REQUIRE(layers_.size() == options.last_layer - options.first_layer + 1,
                "a stage needs the weights of each of its layers");
}

std::vector<std::uint32_t> layer_stage::engram_layers() const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t layer = options_.first_layer; layer <= options_.last_layer; ++layer)
    if (schedule_[layer].engram) out.push_back(layer);
  return out;
}

result<void> layer_stage::check_inputs(const flow::step_table& table, const flow::row_block& input,
                                       std::span<const flow::row_block> engram) const {
  const auto belongs = [&](const flow::row_block& block) {
    return block.step == table.step && block.spans == table.spans &&
           block.rows_count == table.rows_count();
  };
  const row_kind wanted = options_.first_layer == 0 ? row_kind::embedded : row_kind::activation;
  if (input.kind != wanted || !belongs(input))
    return fail(errc::malformed, step_text(table.step) + ": input rows are not those of the step");
  for (const std::uint32_t layer : engram_layers()) {
    const auto found = std::ranges::find(engram, layer, &flow::row_block::layer);
    if (found == engram.end() || found->kind != row_kind::engram_rows || !belongs(*found) ||
        found->row_bytes != row_bytes(row_kind::engram_rows, config_) ||
        flow::bytes_of(found->payload).size() < std::size_t{found->rows_count} * found->row_bytes)
      return fail(errc::malformed, step_text(table.step) +
                                       ": no Engram rows of the step for layer " +
                                       std::to_string(layer));
  }
  return {};
}

result<void> layer_stage::check_span(const flow::row_span& span) const {
  const std::string name = "request " + std::to_string(span.request.value);
  const std::uint64_t end = std::uint64_t{span.first_position} + span.rows_count;
  if (end > options_.context_max)
    return fail(errc::capacity, name + " reaches " + std::to_string(end) +
                                    " positions, the context holds " +
                                    std::to_string(options_.context_max));
  const auto found = sequences_.find(span.request);
  if (found == sequences_.end() && span.first_position != 0)
    return fail(errc::mismatch, name + " is unknown here and does not begin at position 0");
  if (found != sequences_.end() && found->second.written() != span.first_position)
    return fail(errc::mismatch, name + " has " + std::to_string(found->second.written()) +
                                    " rows, the step continues at " +
                                    std::to_string(span.first_position));
  return {};
}

result<void> layer_stage::check_spans(const flow::step_table& table) const {
  std::unordered_set<request_id> seen;
  std::size_t requests = sequences_.size();
  for (const flow::row_span& span : table.spans) {
    if (!seen.insert(span.request).second)
      return fail(errc::malformed,
                  "request " + std::to_string(span.request.value) + " has two spans of rows");
    if (const result<void> fits = check_span(span); !fits) return fits;
    if (!sequences_.contains(span.request)) ++requests;
  }
  if (requests > options_.requests_max)
    return fail(errc::capacity, "the stage would hold " + std::to_string(requests) +
                                    " requests, its bound is " +
                                    std::to_string(options_.requests_max) + " (limits.requests)");
  return {};
}

/// Creates the states of new requests and takes the pages of all rows.
result<step_rows> layer_stage::open_rows(const flow::step_table& table,
                                         const row_planes_view& input,
                                         std::span<const flow::row_block> engram) {
  step_rows rows;
  for (const flow::row_span& span : table.spans) {
    sequence_state& sequence = sequences_
                                   .try_emplace(span.request, config_, schedule_,
                                                options_.first_layer, options_.last_layer, pool_)
                                   .first->second;
    if (const result<void> reserved = sequence.reserve(span.first_position + span.rows_count);
        !reserved)
      return fail(reserved.error());
    rows.spans.push_back({span, rows.positions.size(), &sequence});
    for (std::uint32_t i = 0; i < span.rows_count; ++i)
      rows.positions.push_back(static_cast<std::int32_t>(span.first_position + i));
  }
  rows.image_rows.assign(input.image_rows.begin(), input.image_rows.end());
  for (const flow::row_block& block : engram)
    rows.engram[block.layer] = {block.payload->data(), block.rows_count, block.row_bytes};
  return rows;
}

/// After check_spans(): states that the step created go, others lose what it reserved or appended.
void layer_stage::take_back(const flow::step_table& table) {
  for (const flow::row_span& span : table.spans) {
    const auto found = sequences_.find(span.request);
    if (found == sequences_.end()) continue;
    if (span.first_position == 0)
      sequences_.erase(found);
    else
      found->second.truncate(span.first_position);
  }
}

/// The streams that the first layer reads: the block's own memory, or copies of the embedding.
model::residual layer_stage::first_residual(const row_planes_view& input, row_kind kind) {
  if (kind == row_kind::activation) return {input.streams, input.pre};
  const std::size_t rows = input.streams.rows;
  const auto streams = scratch_.take<bf16>(rows, std::size_t{config_.streams} * config_.width);
  const auto pre = scratch_.take<float>(rows, config_.streams);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t s = 0; s < config_.streams; ++s)
      std::ranges::copy(input.streams.row(row), streams.row_data(row) + s * config_.width);
    std::ranges::fill(pre.row(row), 0.0F);
    pre.row(row)[0] = 1.0F;
  }
  return {streams, pre};
}

result<void> layer_stage::run_layers(const model::context& c, const step_rows& rows,
                                     const selection_overrides& overrides,
                                     const model::residual& in,
                                     const model::residual_out& out) const {
  step_selections selections;
  model::residual current = in;
  for (std::uint32_t layer = options_.first_layer; layer <= options_.last_layer; ++layer) {
    const layer_runner runner(config_, schedule_, layer, layers_[layer - options_.first_layer]);
    if (const result<void> ran = runner.run(c, rows, selections, overrides, current, out); !ran)
      return fail(ran.error().with("layer " + std::to_string(layer)));
    current = {out.streams, out.pre};
  }
  return {};
}

flow::row_block layer_stage::collapse_wanted(const model::context& c, const flow::step_table& table,
                                             const model::residual& final_rows) const {
  const auto collapsed = c.scratch.take<bf16>(c.rows(), config_.width);
  c.kernels.hc_collapse({collapsed, final_rows.streams, final_rows.pre});
  kernels::buffer memory(std::size_t{table.logits_count()} *
                         row_bytes(row_kind::head_input, config_));
  auto* wanted = reinterpret_cast<bf16*>(memory.data());
  std::size_t row = 0;
  for (const flow::row_span& span : table.spans)
    for (std::uint32_t i = 0; i < span.rows_count; ++i, ++row)
      if (i >= span.logits_from) wanted = std::ranges::copy(collapsed.row(row), wanted).out;
  return make_block(row_kind::head_input, table, config_, std::move(memory));
}

result<flow::row_block> layer_stage::run(const flow::step_table& table,
                                         const flow::row_block& input,
                                         std::span<const flow::row_block> engram,
                                         const model::taps& probes,
                                         const selection_overrides& overrides) {
  if (const result<void> checked = check_inputs(table, input, engram); !checked)
    return fail(checked.error());
  const result<row_planes_view> planes = view_planes(input, config_);
  if (!planes) return fail(planes.error());
  if (const result<void> checked = check_spans(table); !checked)
    return fail(checked.error().with(step_text(table.step)));
  const result<step_rows> rows = open_rows(table, *planes, engram);
  if (!rows) {
    take_back(table);
    return fail(rows.error().with(step_text(table.step)));
  }

  scratch_.reset();
  const std::size_t n = rows->count();
  const model::context c{backend_, config_,         rotary_,         scratch_,
                         probes,   rows->positions, rows->image_rows};
  const model::residual in = first_residual(*planes, input.kind);
  kernels::buffer memory(ends_model() ? 0 : n * row_bytes(row_kind::activation, config_));
  model::residual_out out;
  if (ends_model()) {
    out = {scratch_.take<bf16>(n, std::size_t{config_.streams} * config_.width),
           scratch_.take<float>(n, config_.streams)};
  } else {
    const row_planes_out next = planes_of(memory, row_kind::activation, n, config_);
    std::ranges::copy(rows->image_rows, next.image_rows.begin());
    out = {next.streams, next.pre};
  }
  if (const result<void> ran = run_layers(c, *rows, overrides, in, out); !ran) {
    take_back(table);
    return fail(ran.error().with(step_text(table.step)));
  }
  for (const span_rows& span : rows->spans)
    span.sequence->write(table.step, span.span.first_position + span.span.rows_count);
  if (ends_model()) return collapse_wanted(c, table, {out.streams, out.pre});
  return make_block(row_kind::activation, table, config_, std::move(memory));
}

void layer_stage::apply(const flow::verdict& verdict) {
  for (const flow::commitment& commitment : verdict.commitments) {
    const auto found = sequences_.find(commitment.request);
    if (found == sequences_.end()) continue;
    if (commitment.finished)
      sequences_.erase(found);
    else
      found->second.commit(verdict.step, commitment.committed);
  }
}

}  // namespace cedar::stage
