#include "runtime/stage/stage_step.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"
#include "runtime/model/drafter.hpp"
#include "runtime/stage/drafter_stage.hpp"
#include "runtime/stage/entry_selection.hpp"
#include "runtime/stage/row_layout.hpp"
#include "runtime/stage/shared_blocks.hpp"

namespace cedar::stage {

using flow::row_kind;
using kernels::bf16;
using kernels::matrix_view;

namespace {

bool holds(const std::vector<std::uint32_t>& layers, std::uint32_t layer) {
  return std::ranges::binary_search(layers, layer);
}

matrix_view<const std::byte> bytes_of(matrix_view<const bf16> rows) {
  return {reinterpret_cast<const std::byte*>(rows.data), rows.rows, rows.cols * sizeof(bf16),
          rows.stride * sizeof(bf16)};
}

}  // namespace

stage_step::stage_step(const stage_parts& parts, kernels::arena& scratch, joined_step inputs,
                       step_rows rows, step_selections& selections,
                       const selection_overrides& overrides)
    : parts_(parts),
      scratch_(scratch),
      inputs_(std::move(inputs)),
      overrides_(overrides),
      all_(std::move(rows)),
      selections_(selections),
      layer_(parts.first_layer),
      awaited_choices_({parts.config, parts.schedule}, parts.indexers, parts.first_layer),
      awaited_experts_(parts.config, parts.experts_elsewhere, parts.first_layer) {
  open(*inputs_.rows);
}

model::context stage_step::context(const model::taps& probes) const {
  return {parts_.backend, parts_.config,      parts_.rotary,      scratch_,
          probes,         active().positions, active().image_rows};
}

layer_runner stage_step::runner() const {
  return {parts_.config, parts_.schedule, layer_, weights_of(layer_),
          keys_elsewhere(layer_) ? &selections_.new_keys : nullptr};
}

/// Indexers hold the index keys that the layer makes or chooses by.
bool stage_step::keys_elsewhere(std::uint32_t layer) const {
  return std::ranges::any_of(parts_.indexers, [&](const model::index_shard& shard) {
    return shard.owner == parts_.schedule[layer].owner;
  });
}

/// The streams that the first layer reads: the block's own memory, or copies of the embedding.
void stage_step::open(const flow::row_block& block) {
  const bool decoder_rows = parts_.first_layer > parts_.schedule.decoder_begin();
  if (decoder_rows) narrow_rows();
  const row_planes_view planes = view_planes(block, parts_.config).value();
  step_rows& active = narrowed_ ? decoder_ : all_;
  active.image_rows.assign(planes.image_rows.begin(), planes.image_rows.end());
  const std::size_t rows = active.count();
  CEDAR_ASSERT(planes.streams.rows == rows, "the input's rows were checked");
  if (block.kind == row_kind::activation) {
    current_ = {planes.streams, planes.pre};
  } else {
    current_ = model::start_streams(scratch_, parts_.config, planes.streams);
  }
  const bool narrows_later = !decoder_rows && in_decoder(parts_.last_layer) && narrows();
  if (!narrows_later)
    output_ = rows_of_output(rows);
  else if (parts_.first_layer < parts_.schedule.decoder_begin())
    output_ = {scratch_.take<bf16>(rows, current_.streams.cols),
               scratch_.take<float>(rows, current_.pre.cols)};
  take_frames();
}

/// Where the stage's last layer writes: the block to be sent on, or scratch before the head.
model::residual_out stage_step::rows_of_output(std::size_t rows) {
  if (ends_model())
    return {scratch_.take<bf16>(rows, std::size_t{parts_.config.streams} * parts_.config.width),
            scratch_.take<float>(rows, parts_.config.streams)};
  memory_ = kernels::buffer(rows * row_bytes(row_kind::activation, parts_.config));
  const row_planes_out planes = planes_of(memory_, row_kind::activation, rows, parts_.config);
  return {planes.streams, planes.pre};
}

/// From here on only the rows that walk the decoder count.
void stage_step::narrow_rows() {
  decoder_ = {};
  std::vector<std::size_t> kept;
  for (const span_rows& span : all_.spans) {
    const std::uint32_t from = span.span.decoder_from();
    if (from == span.span.rows_count) continue;
    flow::row_span rest = span.span;
    rest.first_position += from;
    rest.rows_count -= from;
    rest.logits_from -= from;
    decoder_.spans.push_back({rest, kept.size(), span.sequence});
    for (std::uint32_t i = from; i < span.span.rows_count; ++i) {
      kept.push_back(span.first_row + i);
      decoder_.positions.push_back(static_cast<std::int32_t>(span.span.first_position + i));
    }
  }
  if (!all_.image_rows.empty())
    for (const std::size_t row : kept) decoder_.image_rows.push_back(all_.image_rows[row]);
  for (const auto& [layer, fetched] : all_.engram) {
    if (!in_decoder(layer)) continue;
    const auto rows = scratch_.take<std::byte>(kept.size(), fetched.cols);
    for (std::size_t i = 0; i < kept.size(); ++i)
      std::ranges::copy(fetched.row(kept[i]), rows.row_data(i));
    decoder_.engram[layer] = rows;
  }
  narrowed_ = true;
}

/// The decoder's first layer makes global entries of all rows; the streams of the others end here.
result<void> stage_step::enter_decoder(const model::taps& probes) {
  if (const auto made = runner().make_global(context(probes), all_, current_); !made) return made;
  global_made_ = true;
  narrow_rows();
  output_ = rows_of_output(decoder_.count());
  take_frames();
  std::size_t to = 0;
  for (const span_rows& span : all_.spans)
    for (std::uint32_t i = span.span.decoder_from(); i < span.span.rows_count; ++i, ++to) {
      std::ranges::copy(current_.streams.row(span.first_row + i), output_.streams.row_data(to));
      std::ranges::copy(current_.pre.row(span.first_row + i), output_.pre.row_data(to));
    }
  current_ = {output_.streams, output_.pre};
  return {};
}

/// Memory of the sublayers of the active rows, for as long as these are the rows.
void stage_step::take_frames() {
  attention_frame_ = model::take_frame(scratch_, parts_.config, active().count());
  moe_frame_ = model::take_frame(scratch_, parts_.config, active().count());
}

/// True if the next layer reads the streams as this one writes them: all of the rows, in this
/// stage, without Engram's in between.
bool stage_step::next_layer_follows() const {
  if (layer_ == parts_.last_layer || weights_of(layer_ + 1).engram) return false;
  return layer_ + 1 != parts_.schedule.decoder_begin() || !narrows();
}

/// What the layer made, for later stages and indexers.
void stage_step::send_entries(std::vector<flow::row_block>& out) const {
  const shared_context c{parts_.config, parts_.schedule};
  const model::shared_state& exports = parts_.exports;
  if (holds(exports.entries, layer_))
    out.push_back(make_entries_block(row_kind::shared_kv, c, table(), layer_, all_));
  if (holds(exports.index_keys, layer_))
    out.push_back(make_entries_block(row_kind::index_keys, c, table(), layer_, all_));
  for (const model::index_shard& shard : parts_.indexers)
    if (shard.owner == layer_)
      if (auto keys = make_keys_block(c, table(), shard, selections_.new_keys))
        out.push_back(std::move(*keys));
}

/// What the layer chose and later stages use.
void stage_step::send_choices(std::vector<flow::row_block>& out) const {
  const shared_context c{parts_.config, parts_.schedule};
  const model::shared_state& exports = parts_.exports;
  if (holds(exports.selections, layer_))
    out.push_back(make_selection_block(row_kind::selection, c, table(), layer_,
                                       selections_.by_source.at(layer_)));
  if (holds(exports.candidates, layer_))
    out.push_back(make_candidates_block(c, table(), layer_, selections_.candidates));
}

/// Of the layer whose input is at hand, if it is a target of the drafter: they are kept, and sent
/// as far as the drafter takes them.
void stage_step::make_taps(const model::taps& probes, std::vector<flow::row_block>& out) const {
  if (!holds(parts_.tapped_layers, layer_)) return;
  const model::context c = context(probes);
  for (const span_rows& span : active().spans) {
    const kernels::arena::mark scope(scratch_);
    const std::uint32_t rows = span.span.rows_count;
    const std::uint32_t kept = std::min(rows, drafter_ring_rows(parts_.config));
    const auto taps =
        model::make_tap(c, current_.streams.rows_from(span.first_row + rows - kept, kept));
    span.sequence->taps(layer_).write(span.span.first_position + rows - kept, bytes_of(taps));
  }
  send_taps(out);
}

void stage_step::send_taps(std::vector<flow::row_block>& out) const {
  std::size_t count = 0;
  for (const flow::row_span& span : table().spans) count += tapped_rows(span, parts_.config);
  if (count == 0) return;
  const std::size_t row_bytes_each = row_bytes(row_kind::draft_taps, parts_.config);
  kernels::buffer memory(count * row_bytes_each);
  std::byte* to = memory.data();
  for (const span_rows& span : all_.spans) {
    const std::uint32_t end = span.span.first_position + span.span.rows_count;
    for (std::uint32_t i = tapped_rows(span.span, parts_.config); i > 0; --i)
      to = std::copy_n(span.sequence->taps(layer_).row(end - i), row_bytes_each, to);
  }
  out.push_back(make_block(row_kind::draft_taps, table(), parts_.config, std::move(memory)));
  out.back().layer = layer_;
}

/// Up to the choice of entries, which may be asked for.
result<void> stage_step::begin_attention(const model::taps& probes,
                                         std::vector<flow::row_block>& out) {
  half_scope_.emplace(scratch_);
  const model::context c = context(probes);
  if (!attention_begun_) current_ = runner().open(c, active(), current_, output_, attention_frame_);
  auto half = runner().begin_attention(c, active(), selections_, overrides_, current_,
                                       attention_frame_, global_made_);
  if (!half) return fail(half.error());
  half_ = *half;
  chosen_ = false;
  send_entries(out);
  if (half_->query)
    awaited_choices_.ask(table(), layer_, *half_->query, selections_.candidates, out);
  return {};
}

/// The entries are chosen; they may have to be fetched.
void stage_step::end_choice(const model::taps& probes, std::vector<flow::row_block>& out) {
  if (half_->query) {
    awaited_choices_.settle(selections_);
    offer_selection(context(probes), layer_, selections_.by_source.at(layer_));
  }
  chosen_ = true;
  send_choices(out);
  make_taps(probes, out);
  if (needs_gather()) request_entries(out);
}

result<void> stage_step::attend(const model::taps& probes, std::vector<flow::row_block>& out) {
  if (!half_) {
    if (layer_ == parts_.schedule.decoder_begin() && narrows())
      if (const auto entered = enter_decoder(probes); !entered) return entered;
    if (active().count() == 0) {  // the whole step belongs to the encoder
      if (parts_.schedule[layer_].index_source == layer_) selections_.by_source[layer_].clear();
      if (parts_.schedule[layer_].makes_candidates) selections_.candidates.clear();
      send_entries(out);
      send_choices(out);
      make_taps(probes, out);
      return {};
    }
    if (const auto begun = begin_attention(probes, out); !begun) return begun;
  }
  if (awaited_choices_.any()) return {};
  if (!chosen_) end_choice(probes, out);
  if (waits_for_) return {};
  const model::context c = context(probes);
  runner().end_attention(c, active(), selections_, *half_, output_, moe_frame_);
  half_.reset();
  half_scope_.reset();
  current_ = {output_.streams, output_.pre};
  return {};
}

void stage_step::close_moe(const model::taps& probes) {
  const model::context c = context(probes);
  attention_begun_ = next_layer_follows();
  if (attention_begun_) {
    const auto next = model::sublayer_of(weights_of(layer_ + 1).attention, attention_frame_);
    runner().close_moe(c, *moe_, moe_frame_, current_, output_, &next);
  } else {
    runner().close_moe(c, *moe_, moe_frame_, current_, output_, nullptr);
  }
  moe_.reset();
  moe_scope_.reset();
  awaited_experts_.release();
}

result<void> stage_step::run_layer(const model::taps& probes, std::vector<flow::row_block>& out) {
  if (!moe_) {
    if (const auto attended = attend(probes, out); !attended) return attended;
    if (waits_for_entries() || active().count() == 0) return {};
    open_moe(probes, out);
    if (awaited_experts_.any()) return {};
  }
  if (!experts_here_done_) runner().run_moe_here(context(probes), moe_frame_, *moe_);
  experts_here_done_ = true;
  if (!awaited_experts_.any()) close_moe(probes);
  return {};
}

result<void> stage_step::advance(const model::taps& probes, std::vector<flow::row_block>& out) {
  CEDAR_REQUIRE(can_advance(), "a step that is done, or waits, cannot go on");
  for (; layer_ <= parts_.last_layer; ++layer_) {
    if (const auto ran = run_layer(probes, out); !ran)
      return fail(ran.error().with("layer " + std::to_string(layer_)));
    if (waits_for_entries() || moe_) return {};
    global_made_ = false;
  }
  out.push_back(finish(probes));
  done_ = true;
  return {};
}

flow::row_block stage_step::finish(const model::taps& probes) {
  if (!ends_model()) {
    const row_planes_out planes =
        planes_of(memory_, row_kind::activation, active().count(), parts_.config);
    std::ranges::copy(active().image_rows, planes.image_rows.begin());
    return make_block(row_kind::activation, table(), parts_.config, std::move(memory_));
  }
  matrix_view<bf16> collapsed;
  if (table().logits_count() > 0) {
    const model::context c = context(probes);
    collapsed = scratch_.take<bf16>(c.rows(), parts_.config.width);
    c.kernels.hc_collapse({collapsed, current_.streams, current_.pre});
  }
  kernels::buffer memory(std::size_t{table().logits_count()} *
                         row_bytes(row_kind::head_input, parts_.config));
  if (collapsed.rows > 0) {
    auto* wanted = reinterpret_cast<bf16*>(memory.data());
    for (const span_rows& span : active().spans)
      for (std::uint32_t i = span.span.logits_from; i < span.span.rows_count; ++i)
        wanted = std::ranges::copy(collapsed.row(span.first_row + i), wanted).out;
  }
  return make_block(row_kind::head_input, table(), parts_.config, std::move(memory));
}

}  // namespace cedar::stage
