#include "runtime/stage/layer_runner.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"
#include "runtime/model/compressor.hpp"
#include "runtime/model/engram.hpp"
#include "runtime/stage/entry_selection.hpp"

namespace cedar::stage {

using kernels::bf16;
using kernels::matrix_view;

namespace {

std::uint32_t as_u32(std::size_t value) {
  return static_cast<std::uint32_t>(value);
}

}  // namespace

model::residual layer_runner::open(const model::context& c, const step_rows& rows,
                                   const model::residual& in, const model::residual_out& out,
                                   const model::sublayer_frame& frame) const {
  const model::residual opened = after_engram(c, rows, in, out.streams);
  model::begin_sublayer(c, model::sublayer_of(weights_.attention, frame), opened);
  return opened;
}

model::residual layer_runner::after_engram(const model::context& c, const step_rows& rows,
                                           const model::residual& in, matrix_view<bf16> out) const {
  if (!weights_.engram) return in;
  model::apply_engram(c, layer_, *weights_.engram, rows.engram.at(layer_), in.streams, out);
  return {out, in.pre};
}

result<void> layer_runner::make_global(const model::context& c, const step_rows& rows,
                                       const model::residual& in) const {
  const kernels::arena::mark scope(c.scratch);
  const auto streams = weights_.engram ? c.scratch.take<bf16>(in.streams.rows, in.streams.cols)
                                       : matrix_view<bf16>{};
  return create_global(
      c, rows,
      model::sublayer_input(c, weights_.attention.norm, after_engram(c, rows, in, streams)));
}

result<attention_half> layer_runner::begin_attention(const model::context& c, const step_rows& rows,
                                                     step_selections& selections,
                                                     const selection_overrides& overrides,
                                                     const model::residual& in,
                                                     const model::sublayer_frame& frame,
                                                     bool global_made) const {
  attention_half half{
      model::open_attention(c, layer_, weights_.attention, in, frame, schedule_.ratio)};
  const auto x = half.rows.frame.x;
  if (schedule_.mode == model::layer_mode::full && !global_made) {
    if (const result<void> created = create_global(c, rows, x); !created)
      return fail(created.error());
  }
  if (schedule_.index_source) {
    const bool selects = *schedule_.index_source == layer_;
    const auto& compressed = half.rows.query.compressed;
    if (selects && new_keys_ != nullptr)
      half.query = model::make_index_query(c, layer_, *weights_.attention.indexer, x, compressed);
    else if (selects)
      select_entries(c, {config_, schedule_, layer_}, *weights_.attention.indexer, rows, x,
                     compressed, selections);
    const auto forced = overrides.positions.find(*schedule_.index_source);
    half.chosen = forced != overrides.positions.end()
                      ? &forced->second
                      : &selections.by_source[*schedule_.index_source];
  }
  return half;
}

void layer_runner::end_attention(const model::context& c, const step_rows& rows,
                                 const step_selections& selections, const attention_half& half,
                                 const model::residual_out& out,
                                 const model::sublayer_frame& moe_frame) const {
  const auto entries = visible_entries(c, rows, selections, half);
  const auto moe = model::sublayer_of(weights_.moe, moe_frame);
  model::close_attention(c, layer_, weights_.attention, half.rows, entries, schedule_.ratio, out,
                         &moe);
  for (const span_rows& span : rows.spans)
    span.sequence->window(layer_).write(span.span.first_position,
                                        matrix_view<const std::byte>(half.rows.own)
                                            .rows_from(span.first_row, span.span.rows_count));
}

model::opened_moe layer_runner::open_moe(const model::context& c,
                                         const selection_overrides& overrides,
                                         const model::sublayer_frame& frame) const {
  const auto forced = overrides.experts.find(layer_);
  return model::open_moe_sublayer(
      c, layer_, weights_.moe, frame,
      forced == overrides.experts.end() ? matrix_view<const std::int32_t>{} : forced->second);
}

void layer_runner::run_moe_here(const model::context& c, const model::sublayer_frame& frame,
                                const model::opened_moe& opened) const {
  model::run_moe_here(c, weights_.moe, frame.quantized, opened);
}

void layer_runner::close_moe(const model::context& c, const model::opened_moe& opened,
                             const model::sublayer_frame& frame, const model::residual& in,
                             const model::residual_out& out,
                             const model::following_sublayer* next) const {
  model::close_moe_sublayer(c, layer_, opened, frame, in, out, next);
}

void layer_runner::run_moe(const model::context& c, const selection_overrides& overrides,
                           const model::sublayer_frame& frame, const model::residual& in,
                           const model::residual_out& out,
                           const model::following_sublayer* next) const {
  const kernels::arena::mark scope(c.scratch);
  const model::opened_moe opened = open_moe(c, overrides, frame);
  run_moe_here(c, frame, opened);
  close_moe(c, opened, frame, in, out, next);
}

result<void> layer_runner::create_global(const model::context& c, const step_rows& rows,
                                         matrix_view<const bf16> x) const {
  const model::compressor_weights& weights = *weights_.attention.compressor;
  if (new_keys_ != nullptr) new_keys_->clear();
  if (schedule_.ratio == 1) {
    const auto latents = model::latents_of_rows(c, weights, x);
    for (const span_rows& span : rows.spans)
      if (const result<void> made = create_per_row(c, span, latents); !made) return made;
  } else {
    const auto inputs = model::project_compressor(c, weights, x);
    for (const span_rows& span : rows.spans)
      if (const result<void> made = create_grouped(c, span, inputs); !made) return made;
  }
  offer_global(c, rows);
  return {};
}

result<void> layer_runner::create_per_row(const model::context& c, const span_rows& span,
                                          matrix_view<const bf16> latents) const {
  const std::size_t count = span.span.entries_count(1);
  if (count == 0) return {};
  const std::size_t first = span.first_row + span.span.rows_count - count;
  const auto entries = model::make_global_entries(c, layer_, *weights_.attention.indexer,
                                                  latents.rows_from(first, count),
                                                  c.positions.subspan(first, count));
  return append(span.sequence->global(layer_), entries);
}

result<void> layer_runner::append(memory::global_cache& cache,
                                  const model::global_entries& entries) const {
  if (new_keys_ == nullptr) return cache.append(entries.main, entries.index_keys);
  for (std::size_t i = 0; i < entries.index_keys.rows; ++i) {
    const auto key = entries.index_keys.row(i);
    new_keys_->insert(new_keys_->end(), key.begin(), key.end());
  }
  return cache.append(entries.main, {entries.main.data, entries.main.rows, 0});
}

result<void> layer_runner::create_grouped(const model::context& c, const span_rows& span,
                                          const model::compressor_inputs& inputs) const {
  const std::uint32_t ratio = schedule_.ratio;
  const std::size_t width = config_.head_dim;
  const std::uint32_t begin = span.span.first_position;
  memory::global_cache& cache = span.sequence->global(layer_);
  memory::position_ring& pending = span.sequence->pending(layer_);
  const std::uint32_t first_group = span.span.first_entry(ratio);
  const std::uint32_t groups = span.span.entries_count(ratio);
  CEDAR_ASSERT(groups == 0 || cache.written() == first_group,
               "global entries do not continue where they ended");

  const auto waiting = c.scratch.take<float>(span.span.rows_count, 2 * width);
  for (std::uint32_t i = 0; i < span.span.rows_count; ++i) {
    std::ranges::copy(inputs.values.row(span.first_row + i), waiting.row_data(i));
    std::ranges::copy(inputs.gates.row(span.first_row + i), waiting.row_data(i) + width);
  }
  if (groups > 0) {
    const model::compressor_inputs members{c.scratch.take<float>(groups * ratio, width),
                                           c.scratch.take<float>(groups * ratio, width)};
    for (std::uint32_t i = 0; i < groups * ratio; ++i) {
      const std::uint32_t position = first_group * ratio + i;
      const float* row = position < begin ? reinterpret_cast<const float*>(pending.row(position))
                                          : waiting.row_data(position - begin);
      std::copy_n(row, width, members.values.row_data(i));
      std::copy_n(row + width, width, members.gates.row_data(i));
    }
    const auto positions = c.scratch.take<std::int32_t>(1, groups);
    for (std::uint32_t j = 0; j < groups; ++j)
      positions.data[j] = static_cast<std::int32_t>((first_group + j) * ratio);
    const auto latents = model::pool_groups(c, *weights_.attention.compressor, members, ratio);
    const auto entries = model::make_global_entries(c, layer_, *weights_.attention.indexer, latents,
                                                    positions.row(0));
    if (const result<void> kept = append(cache, entries); !kept) return kept;
  }
  pending.write(
      begin, {reinterpret_cast<const std::byte*>(waiting.data), waiting.rows, pending.row_bytes()});
  return {};
}

std::span<const kernels::attention_entries> layer_runner::visible_entries(
    const model::context& c, const step_rows& rows, const step_selections& selections,
    const attention_half& half) const {
  const bool gathered =
      selections.gathered && selections.gathered->source == schedule_.index_source;
  const auto entries = c.scratch.take<kernels::attention_entries>(1, c.rows());
  for (const span_rows& span : rows.spans) {
    const memory::position_ring& ring = span.sequence->window(layer_);
    const std::uint32_t begin = span.span.first_position;
    const std::uint32_t first_visible = in_decoder_ ? span.span.decoder_begin : span.span.begin;
    for (std::size_t i = 0; i < span.span.rows_count; ++i) {
      const std::size_t row = span.first_row + i;
      const std::uint32_t position = begin + as_u32(i);
      const std::uint32_t oldest = std::max(
          position + 1 > config_.window ? position + 1 - config_.window : 0, first_visible);
      const std::size_t window_count = position - oldest + 1;
      const std::size_t selected_count = half.chosen == nullptr ? 0 : (*half.chosen)[row].size();
      const auto pointers = c.scratch.take<const std::byte*>(1, window_count + selected_count);
      for (std::uint32_t p = oldest; p <= position; ++p)
        pointers.data[p - oldest] =
            p < begin ? ring.row(p) : half.rows.own.row_data(span.first_row + (p - begin));
      if (gathered) {
        for (std::size_t j = 0; j < selected_count; ++j)
          pointers.data[window_count + j] = selections.gathered->entry(row, j);
      } else if (selected_count > 0) {
        const memory::global_cache& cache = span.sequence->global(*schedule_.owner);
        for (std::size_t j = 0; j < selected_count; ++j)
          pointers.data[window_count + j] = cache.main_entry((*half.chosen)[row][j]);
      }
      entries.data[row] = {{pointers.data, window_count},
                           {pointers.data + window_count, selected_count}};
    }
  }
  return entries.row(0);
}

void layer_runner::offer_global(const model::context& c, const step_rows& rows) const {
  if (!c.probes.wants(layer_, "attn.compress_kv") && !c.probes.wants(layer_, "index.k")) return;
  for (const span_rows& span : rows.spans) {
    const memory::global_cache& cache = span.sequence->global(layer_);
    const std::size_t count = cache.written();
    const auto main = c.scratch.take<std::byte>(
        count, kernels::entry_bytes(model::global_entry_format, config_.head_dim));
    const auto keys = c.scratch.take<std::byte>(
        count, kernels::entry_bytes(model::index_entry_format, config_.index_head_dim));
    for (std::uint32_t j = 0; j < count; ++j) {
      std::copy_n(cache.main_entry(j), main.cols, main.row_data(j));
      if (new_keys_ == nullptr) std::copy_n(cache.index_key(j), keys.cols, keys.row_data(j));
    }
    model::offer_entries(c, layer_, "attn.compress_kv", main, model::global_entry_format,
                         config_.head_dim);
    if (new_keys_ != nullptr) continue;
    model::offer_entries(c, layer_, "index.k", keys, model::index_entry_format,
                         config_.index_head_dim);
  }
}

}  // namespace cedar::stage
