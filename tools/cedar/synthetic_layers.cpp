#include "tools/cedar/synthetic_layers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/model/compressor.hpp"
#include "runtime/stage/layer_stage.hpp"

namespace cedar::tools {

using kernels::bf16;
using kernels::matrix_view;
using model::layer_mode;

namespace {

constexpr std::size_t inputs_count = 16;
constexpr std::size_t packed_entries = 4096;

std::size_t heads_width(const model::model_config& c) {
  return std::size_t{c.heads} * c.head_dim;
}

/// Of all FP8 and FP4 codes, with room for their pages.
std::size_t code_bytes(const model::model_config& c) {
  const std::size_t d = c.width;
  const std::size_t dense = d * (c.q_rank + c.head_dim) + heads_width(c) * c.q_rank +
                            heads_width(c) * c.o_rank + d * c.o_groups * c.o_rank +
                            3 * d * c.expert_inner +
                            std::size_t{c.index_heads} * c.index_head_dim * c.q_rank;
  const std::size_t experts = std::size_t{c.routed_experts} * 3 * d * c.expert_inner / 2;
  return dense + experts + (16 + std::size_t{c.routed_experts} * 3) * 4096;
}

std::size_t pages_of(const model::model_config& c, const model::schedule& schedule,
                     std::uint32_t positions) {
  stage::layer_stage_options options;
  options.last_layer = c.layers - 1;
  options.context_max = positions;
  return stage::pages_needed(schedule, options).whole;
}

model::model_config with_experts(model::model_config config, std::uint32_t experts) {
  config.routed_experts = experts;
  return config;
}

template <class T>
std::size_t view_bytes(matrix_view<T> view) {
  return view.rows * view.cols * sizeof(T);
}
template <class Weight>
std::size_t codes_and_scales(const Weight& weight) {
  return view_bytes(weight.codes) + view_bytes(weight.scales);
}

}  // namespace

synthetic_layers::synthetic_layers(model::model_config config, std::uint32_t experts,
                                   std::uint32_t positions_max)
    : config_(with_experts(std::move(config), experts)),
      schedule_(config_),
      rotary_(model::make_rotary(config_)),
      memory_(code_bytes(config_)),
      pools_{
          {stage::page_layout_of(config_, true, true), pages_of(config_, schedule_, positions_max)},
          {stage::page_layout_of(config_, true, false), 0},
          {stage::page_layout_of(config_, false, true), 0}},
      sequence_(config_, schedule_, 0, config_.layers - 1, {}, pools_) {
  make_dense();
  make_experts();
  rows_ = memory_.numbers(inputs_count, std::size_t{config_.streams} * config_.width);
  pre_ = memory_.filled<float>(1, config_.streams, 1.0F / static_cast<float>(config_.streams));
  main_ = memory_.zeros<std::byte>(
      packed_entries, kernels::entry_bytes(model::global_entry_format, config_.head_dim));
  keys_ = memory_.zeros<std::byte>(
      packed_entries, kernels::entry_bytes(model::index_entry_format, config_.index_head_dim));
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer)
    layers_.push_back(weights_of(layer));
}

void synthetic_layers::make_dense() {
  const model::model_config& c = config_;
  const std::size_t s = c.streams;
  const std::size_t d = c.width;
  const auto ones = [&](std::size_t n) {
    return std::span<const bf16>(memory_.filled<bf16>(1, n, kernels::to_bf16(1)).row(0));
  };
  const auto mixing = [&]() -> model::hyper_connection_weights {
    return {memory_.floats((2 + s) * s, s * d, 0.01F), memory_.floats(1, (2 + s) * s, 0.5F).row(0),
            memory_.filled<float>(1, 3, 0.5F).row(0)};
  };
  model::attention_weights& attention = dense_.attention;
  attention.hc = mixing();
  attention.norm = ones(d);
  attention.sinks = memory_.zeros<float>(1, c.heads).row(0);
  attention.wq_a = memory_.next_fp8(c.q_rank, d);
  attention.q_norm = ones(c.q_rank);
  attention.wq_b = memory_.next_fp8(heads_width(c), c.q_rank);
  attention.wkv = memory_.next_fp8(c.head_dim, d);
  attention.kv_norm = ones(c.head_dim);
  attention.wo_a =
      memory_.next_fp8(std::size_t{c.o_groups} * c.o_rank, heads_width(c) / c.o_groups);
  attention.wo_b = memory_.next_fp8(d, std::size_t{c.o_groups} * c.o_rank);
  model::moe_weights& moe = dense_.moe;
  moe.hc = mixing();
  moe.norm = ones(d);
  moe.gate = memory_.numbers(c.routed_experts, d);
  moe.bias = memory_.zeros<float>(1, c.routed_experts).row(0);
  moe.bias_vl = moe.bias;
  moe.experts_per_token = c.experts_per_token;
  moe.shared = {memory_.next_fp8(c.expert_inner, d), memory_.next_fp8(d, c.expert_inner),
                memory_.next_fp8(c.expert_inner, d)};
}

void synthetic_layers::make_experts() {
  const model::model_config& c = config_;
  for (std::uint32_t i = 0; i < c.routed_experts; ++i) {
    const auto w1 = memory_.next_fp4(c.expert_inner, c.width);
    const auto w2 = memory_.next_fp4(c.width, c.expert_inner);
    dense_.moe.experts.push_back({w1, w2, memory_.next_fp4(c.expert_inner, c.width)});
  }
}

model::layer_weights synthetic_layers::weights_of(std::uint32_t layer) {
  model::layer_weights out = dense_;
  const model::layer_schedule& role = schedule_[layer];
  if (role.mode == layer_mode::full || role.mode == layer_mode::reindex) make_selecting(layer, out);
  return out;
}

void synthetic_layers::make_selecting(std::uint32_t layer, model::layer_weights& weights) {
  const model::model_config& c = config_;
  const bool owns = schedule_[layer].mode == layer_mode::full;
  model::indexer_weights& indexer = weights.attention.indexer.emplace();
  indexer.wq_b = memory_.next_fp8(std::size_t{c.index_heads} * c.index_head_dim, c.q_rank);
  indexer.weights_proj = memory_.numbers(c.index_heads, c.width);
  if (!owns) return;
  indexer.wk = memory_.numbers(c.index_head_dim, c.head_dim);
  indexer.k_norm = memory_.filled<bf16>(1, c.index_head_dim, kernels::to_bf16(1)).row(0);
  model::compressor_weights& compressor = weights.attention.compressor.emplace();
  compressor.wkv = memory_.numbers(c.head_dim, c.width);
  if (schedule_[layer].ratio > 1) compressor.wgate = memory_.numbers(c.head_dim, c.width);
  compressor.norm = memory_.filled<bf16>(1, c.head_dim, kernels::to_bf16(1)).row(0);
}

std::vector<layer_kind> synthetic_layers::kinds() const {
  std::vector<layer_kind> out;
  const auto name_of = [&](std::uint32_t layer) {
    const model::layer_schedule& role = schedule_[layer];
    return role.mode == layer_mode::window_only
               ? std::string(to_string(role.mode))
               : fmt::format("{}, ratio {}", to_string(role.mode), role.ratio);
  };
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer)
    if (!schedule_[layer].engram &&
        std::ranges::find(out, name_of(layer), &layer_kind::name) == out.end())
      out.push_back({name_of(layer), layer, 0});
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
    const auto kind = std::ranges::find(out, name_of(layer), &layer_kind::name);
    if (kind != out.end()) ++kind->count;
  }
  return out;
}

result<void> synthetic_layers::fill(const kernels::backend& backend, std::uint32_t positions) {
  scratch_.reset();
  const auto pack = [&](kernels::entry_format format, std::size_t width,
                        matrix_view<std::byte> to) {
    const auto values = scratch_.take<bf16>(to.rows, width);
    for (std::size_t i = 0; i < to.rows * width; ++i)
      values.data[i] = rows_.data[i * 31 % (rows_.rows * rows_.cols)];
    backend.pack_entries({values, to, format});
  };
  pack(model::global_entry_format, config_.head_dim, main_);
  pack(model::index_entry_format, config_.index_head_dim, keys_);
  const std::uint32_t rows = std::min(config_.window, positions);
  const auto window = scratch_.take<std::byte>(
      rows, kernels::entry_bytes(model::window_entry_format, config_.head_dim));
  pack(model::window_entry_format, config_.head_dim, window);
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
    sequence_.window(layer).write(positions - rows, window);
    if (schedule_[layer].mode != layer_mode::full) continue;
    memory::global_cache& cache = sequence_.global(layer);
    while (cache.written() < positions / schedule_[layer].ratio) {
      const std::size_t count =
          std::min<std::size_t>(main_.rows, positions / schedule_[layer].ratio - cache.written());
      const auto kept = cache.append(main_.rows_from(0, count), keys_.rows_from(0, count));
      if (!kept) return kept;
    }
  }
  positions_ = positions;
  sequence_.write(step_id{1}, positions);
  return {};
}

/// What the owner adds for the next rows: as many as complete a group.
result<void> synthetic_layers::append_entries(std::uint32_t owner, std::uint32_t rows) {
  memory::global_cache& cache = sequence_.global(owner);
  while (cache.written() < (positions_ + rows) / schedule_[owner].ratio) {
    const auto kept = cache.append(main_.rows_from(0, 1), keys_.rows_from(0, 1));
    if (!kept) return kept;
  }
  return {};
}

std::uint32_t synthetic_layers::entries(std::uint32_t layer) const {
  const std::uint32_t ratio = schedule_[layer].ratio;
  return ratio == 0 ? 0 : (positions_ + 1) / ratio;
}

std::uint32_t synthetic_layers::keys_scored(std::uint32_t layer) const {
  const model::layer_schedule& role = schedule_[layer];
  if (role.mode != layer_mode::full && role.mode != layer_mode::reindex) return 0;
  const std::uint32_t pool = config_.candidate_blocks * config_.candidate_block_size;
  return role.uses_candidates ? std::min(entries(layer), pool) : entries(layer);
}

std::vector<std::uint32_t> synthetic_layers::spread(std::uint32_t layer) const {
  const std::uint64_t all = entries(layer);
  const std::uint64_t count = std::min<std::uint64_t>(all, config_.index_topk);
  std::vector<std::uint32_t> out;
  for (std::uint64_t i = 0; i < count; ++i)
    out.push_back(static_cast<std::uint32_t>(i * all / count));
  return out;
}

kernels::candidate_pool synthetic_layers::spread_blocks(std::uint32_t layer) const {
  const std::uint64_t size = config_.candidate_block_size;
  const std::uint64_t all = (entries(layer) + size - 1) / size;
  const std::uint64_t count = std::min<std::uint64_t>(all, config_.candidate_blocks);
  kernels::candidate_pool out{config_.candidate_block_size, {}};
  for (std::uint64_t i = 0; i < count; ++i)
    out.blocks.push_back(static_cast<std::uint32_t>(i * all / count));
  return out;
}

model::residual synthetic_layers::next_rows(std::uint32_t count) {
  next_row_ = (next_row_ + 1) % rows_.rows;
  if (count == 1) return {rows_.rows_from(next_row_, 1), pre_};
  const auto streams = scratch_.take<bf16>(count, rows_.cols);
  const auto pre = scratch_.take<float>(count, pre_.cols);
  for (std::size_t row = 0; row < count; ++row) {
    std::ranges::copy(rows_.row((next_row_ + row) % rows_.rows), streams.row_data(row));
    std::ranges::copy(pre_.row(0), pre.row_data(row));
  }
  return {streams, pre};
}

result<void> synthetic_layers::run(const kernels::backend& backend, std::uint32_t layer) {
  scratch_.reset();
  return run_rows(backend, backend, layer, 1, nullptr);
}

result<void> synthetic_layers::run_between(const kernels::backend& backend,
                                           const kernels::backend& before, std::uint32_t layer,
                                           std::uint32_t rows) {
  scratch_.reset();
  const auto next =
      model::sublayer_of(layers_[layer].attention, model::take_frame(scratch_, config_, rows));
  return run_rows(backend, before, layer, rows, &next);
}

result<void> synthetic_layers::run_rows(const kernels::backend& backend,
                                        const kernels::backend& before, std::uint32_t layer,
                                        std::uint32_t count,
                                        const model::following_sublayer* next) {
  const model::layer_schedule& role = schedule_[layer];
  if (role.owner && *role.owner != layer)
    if (const auto appended = append_entries(*role.owner, count); !appended) return appended;
  stage::step_rows rows;
  rows.spans.push_back(
      {{.request = request_id{1}, .first_position = positions_, .rows_count = count},
       0,
       &sequence_});
  for (std::uint32_t row = 0; row < count; ++row)
    rows.positions.push_back(static_cast<std::int32_t>(positions_ + row));
  rows.image_rows.assign(count, 0);
  stage::step_selections selections;
  stage::selection_overrides overrides;
  if (role.uses_candidates) selections.candidates.assign(count, spread_blocks(layer));
  if (role.mode == layer_mode::reuse)
    overrides.positions[*role.index_source].assign(count, spread(layer));
  const model::taps probes;
  const auto context_of = [&](const kernels::backend& with) {
    return model::context{with,   config_,        rotary_,        scratch_,
                          probes, rows.positions, rows.image_rows};
  };
  const model::context context = context_of(backend);
  const model::residual_out out{scratch_.take<bf16>(count, rows_.cols),
                                scratch_.take<float>(count, config_.streams)};
  const stage::layer_runner runner(config_, schedule_, layer, layers_[layer]);
  const auto attention_frame = model::take_frame(scratch_, config_, count);
  const auto moe_frame = model::take_frame(scratch_, config_, count);
  const model::residual in =
      runner.open(context_of(before), rows, next_rows(count), out, attention_frame);
  const auto half =
      runner.begin_attention(context, rows, selections, overrides, in, attention_frame, false);
  if (half) {
    runner.end_attention(context, rows, selections, *half, out, moe_frame);
    runner.run_moe(context, overrides, moe_frame, {out.streams, out.pre}, out, next);
  }
  sequence_.truncate(positions_);
  if (!half) return fail(half.error());
  return {};
}

double synthetic_layers::bytes_to_read(std::uint32_t layer) const {
  const model::model_config& c = config_;
  const model::attention_weights& a = layers_[layer].attention;
  const model::moe_weights& m = layers_[layer].moe;
  std::size_t out = view_bytes(a.hc.fn) + codes_and_scales(a.wq_a) + codes_and_scales(a.wq_b) +
                    codes_and_scales(a.wkv) + codes_and_scales(a.wo_a) + codes_and_scales(a.wo_b);
  if (a.indexer) {
    out += codes_and_scales(a.indexer->wq_b) + view_bytes(a.indexer->weights_proj);
    if (a.indexer->wk) out += view_bytes(*a.indexer->wk);
  }
  if (a.compressor) {
    out += view_bytes(a.compressor->wkv);
    if (a.compressor->wgate) out += view_bytes(*a.compressor->wgate);
  }
  out += view_bytes(m.hc.fn) + view_bytes(m.gate) + codes_and_scales(m.shared.w1) +
         codes_and_scales(m.shared.w2) + codes_and_scales(m.shared.w3);
  for (std::uint32_t i = 0; i < c.experts_per_token; ++i)
    out += codes_and_scales(m.experts[i].w1) + codes_and_scales(m.experts[i].w2) +
           codes_and_scales(m.experts[i].w3);
  out +=
      std::min(c.window, positions_) * kernels::entry_bytes(model::window_entry_format, c.head_dim);
  out += std::min(c.index_topk, entries(layer)) *
         kernels::entry_bytes(model::global_entry_format, c.head_dim);
  out += keys_scored(layer) * kernels::entry_bytes(model::index_entry_format, c.index_head_dim);
  return static_cast<double>(out);
}

}  // namespace cedar::tools
