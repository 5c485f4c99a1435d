#include "runtime/stage/drafter_stage.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_set>

#include "kernels/base/check.hpp"
#include "runtime/model/attention.hpp"

namespace cedar::stage {

using kernels::bf16;
using kernels::matrix_view;

namespace {

std::string name_of(request_id request) {
  return "request " + std::to_string(request.value);
}

/// Position of the span's first row that walks the decoder.
std::uint32_t first_in_decoder(const flow::row_span& span) noexcept {
  return span.first_position + span.decoder_from();
}

}  // namespace

std::uint32_t tapped_rows(const flow::row_span& span, const model::model_config& config) noexcept {
  return span.tapped_count(config.window, drafter_ring_rows(config));
}

drafter_stage::drafter_stage(const kernels::backend& backend, const model::model_config& config,
                             model::drafter_weights weights, std::uint32_t requests_max)
    : backend_(backend),
      config_(config),
      weights_(std::move(weights)),
      requests_max_(requests_max),
      rotary_(model::make_rotary(config)) {
  CEDAR_REQUIRE(weights_.blocks.size() == config.dspark.blocks && config.dspark.blocks > 0,
                "a drafter needs the weights of each of its blocks");
}

model::context drafter_stage::context(std::span<const std::int32_t> positions,
                                      std::span<const std::uint8_t> image_rows,
                                      const model::taps& probes) {
  return {backend_, config_, rotary_, scratch_, probes, positions, image_rows};
}

result<void> drafter_stage::check_spans(std::span<const flow::row_span> spans) const {
  std::unordered_set<request_id> seen;
  std::size_t requests = sequences_.size();
  for (const flow::row_span& span : spans) {
    if (!seen.insert(span.request).second)
      return fail(errc::malformed, name_of(span.request) + " has two spans of rows");
    const auto found = sequences_.find(span.request);
    const bool known = found != sequences_.end();
    if (known && span.taps == flow::tap_use::none) --requests;
    if (tapped_rows(span, config_) == 0) continue;
    const std::uint32_t expected = known ? found->second.written() : span.decoder_begin;
    if (span.taps == flow::tap_use::rows && first_in_decoder(span) != expected)
      return fail(errc::mismatch, name_of(span.request) + (known ? " goes on" : " begins") +
                                      " at position " + std::to_string(first_in_decoder(span)) +
                                      ", the drafter expects " + std::to_string(expected));
    if (!known) ++requests;
  }
  if (requests > requests_max_)
    return fail(errc::capacity, "the drafter would hold " + std::to_string(requests) +
                                    " requests, its bound is " + std::to_string(requests_max_) +
                                    " (limits.requests)");
  return {};
}

result<void> drafter_stage::extend(step_id step, std::span<const flow::row_span> spans,
                                   matrix_view<const bf16> taps) {
  std::size_t count = 0;
  for (const flow::row_span& span : spans) count += tapped_rows(span, config_);
  if (taps.rows != count || taps.cols != tap_width())
    return fail(errc::malformed, "step " + std::to_string(step.value) + ": taps are [" +
                                     std::to_string(taps.rows) + ", " + std::to_string(taps.cols) +
                                     "], the step's are [" + std::to_string(count) + ", " +
                                     std::to_string(tap_width()) + "]");
  if (const result<void> fits = check_spans(spans); !fits)
    return fail(fits.error().with("step " + std::to_string(step.value)));
  const matrix_view<const std::byte> bytes(reinterpret_cast<const std::byte*>(taps.data), taps.rows,
                                           taps.cols * sizeof(bf16), taps.stride * sizeof(bf16));
  for (const flow::row_span& span : spans)
    if (span.taps == flow::tap_use::none) sequences_.erase(span.request);
  std::size_t row = 0;
  for (const flow::row_span& span : spans) {
    const std::uint32_t rows = tapped_rows(span, config_);
    if (rows == 0) continue;
    const std::uint32_t end = span.first_position + span.rows_count;
    const auto [found, made] = sequences_.try_emplace(span.request, config_);
    drafter_sequence& sequence = found->second;
    if (span.taps == flow::tap_use::window)
      sequence.begin(end - rows);
    else if (made)
      sequence.begin(first_in_decoder(span));
    sequence.taps().write(end - rows, bytes.rows_from(row, rows));
    sequence.extend(step, end);
    row += rows;
  }
  return {};
}

/// Of all rows that the orders' drafts see.
void drafter_stage::make_entries(std::span<const flow::draft_order> orders,
                                 const model::taps& probes) {
  std::vector<std::int32_t> positions;
  for (const flow::draft_order& order : orders) {
    const drafter_sequence& sequence = sequences_.at(order.request);
    for (std::uint32_t p = sequence.entries_begin(); p < sequence.written(); ++p)
      positions.push_back(static_cast<std::int32_t>(p));
  }
  if (positions.empty()) return;
  const kernels::arena::mark scope(scratch_);
  const auto taps = scratch_.take<bf16>(positions.size(), tap_width());
  std::size_t row = 0;
  for (const flow::draft_order& order : orders) {
    const drafter_sequence& sequence = sequences_.at(order.request);
    for (std::uint32_t p = sequence.entries_begin(); p < sequence.written(); ++p, ++row)
      std::memcpy(taps.row_data(row), sequence.taps().row(p), sequence.taps().row_bytes());
  }
  const model::context c = context(positions, {}, probes);
  const auto x = model::quantize(c, model::combine_taps(c, weights_, taps));
  for (std::size_t block = 0; block < weights_.blocks.size(); ++block) {
    const kernels::arena::mark inner(scratch_);
    const matrix_view<const std::byte> entries =
        model::make_window_entries(c, weights_.blocks[block].attention, x, 0);
    row = 0;
    for (const flow::draft_order& order : orders) {
      drafter_sequence& sequence = sequences_.at(order.request);
      const std::uint32_t first = sequence.entries_begin();
      sequence.ring(block).write(first, entries.rows_from(row, sequence.written() - first));
      row += sequence.written() - first;
    }
  }
  for (const flow::draft_order& order : orders) sequences_.at(order.request).entries_made();
}

result<void> drafter_stage::check_orders(std::span<const flow::draft_order> orders) const {
  for (const flow::draft_order& order : orders) {
    const auto found = sequences_.find(order.request);
    if (found == sequences_.end())
      return fail(errc::mismatch, name_of(order.request) + " is unknown to the drafter");
    if (found->second.written() != order.position)
      return fail(errc::mismatch, name_of(order.request) + " is known up to position " +
                                      std::to_string(found->second.written()) +
                                      ", a draft is wanted from " + std::to_string(order.position));
    if (order.last < 0 || static_cast<std::uint32_t>(order.last) >= config_.vocabulary)
      return fail(errc::invalid_argument,
                  name_of(order.request) + ": token " + std::to_string(order.last) +
                      " is outside the vocabulary of " + std::to_string(config_.vocabulary));
  }
  return {};
}

/// Embedded rows [last, noise, noise, ...] of every order.
matrix_view<const bf16> drafter_stage::embed(std::span<const flow::draft_order> orders) {
  const std::size_t block = config_.dspark.block_size;
  const auto rows = scratch_.take<bf16>(orders.size() * block, config_.width);
  for (std::size_t i = 0; i < rows.rows; ++i) {
    const token_id token = i % block == 0 ? orders[i / block].last : config_.dspark.noise_token;
    std::ranges::copy(weights_.embedding.row(static_cast<std::size_t>(token)), rows.row_data(i));
  }
  return rows;
}

/// The entries of a block that every order's rows see.
std::span<const model::draft_context> drafter_stage::windows(
    std::span<const flow::draft_order> orders, std::size_t block) {
  const auto contexts = scratch_.take<model::draft_context>(1, orders.size());
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const drafter_sequence& sequence = sequences_.at(orders[i].request);
    const std::uint32_t first = sequence.visible_from();
    const auto pointers = scratch_.take<const std::byte*>(1, sequence.written() - first);
    for (std::uint32_t p = first; p < sequence.written(); ++p)
      pointers.data[p - first] = sequence.ring(block).row(p);
    contexts.data[i] = pointers.row(0);
  }
  return contexts.row(0);
}

result<std::vector<block_draft>> drafter_stage::run(std::span<const flow::draft_order> orders,
                                                    const model::draft_choice& choose,
                                                    const model::taps& probes) {
  if (const result<void> known = check_orders(orders); !known) return fail(known.error());
  std::vector<block_draft> drafts;
  if (orders.empty()) return drafts;
  const std::size_t block_size = config_.dspark.block_size;
  const std::size_t count = orders.size() * block_size;
  scratch_.reset();
  make_entries(orders, probes);
  const auto positions = scratch_.take<std::int32_t>(1, count);
  const auto image_rows = scratch_.take<std::uint8_t>(1, count);
  const auto newest = scratch_.take<token_id>(1, orders.size());
  std::ranges::fill(image_rows.row(0), std::uint8_t{0});
  for (std::size_t i = 0; i < count; ++i)
    positions.data[i] = static_cast<std::int32_t>(orders[i / block_size].position + i % block_size);
  for (std::size_t i = 0; i < orders.size(); ++i) newest.data[i] = orders[i].last;

  const model::context c = context(positions.row(0), image_rows.row(0), probes);
  model::residual rows = model::start_streams(scratch_, config_, embed(orders));
  const model::residual_out out{scratch_.take<bf16>(count, rows.streams.cols),
                                scratch_.take<float>(count, rows.pre.cols)};
  for (std::uint32_t block = 0; block < config_.dspark.blocks; ++block) {
    const kernels::arena::mark scope(scratch_);
    model::run_draft_block(c, block, weights_.blocks[block], windows(orders, block), rows, out);
    rows = {out.streams, out.pre};
  }
  const auto tokens = scratch_.take<model::draft_token>(orders.size(), block_size);
  model::run_draft_heads(c, weights_, rows, newest.row(0), choose, tokens);
  for (std::size_t i = 0; i < orders.size(); ++i)
    drafts.push_back(
        {orders[i].request, orders[i].position, {tokens.row(i).begin(), tokens.row(i).end()}});
  return drafts;
}

result<void> drafter_stage::apply(const flow::verdict& verdict) {
  for (const flow::commitment& commitment : verdict.commitments) {
    const auto found = sequences_.find(commitment.request);
    if (found == sequences_.end()) continue;
    if (!commitment.finished) {
      const auto kept = found->second.commit(verdict.step, commitment.committed);
      if (!kept)
        return fail(kept.error().with("step " + std::to_string(verdict.step.value) +
                                      ": the drafter's " + name_of(commitment.request)));
    }
    if (commitment.finished || found->second.empty()) sequences_.erase(found);
  }
  return {};
}

std::size_t drafter_stage::ring_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const auto& [request, sequence] : sequences_)
    for (std::size_t block = 0; block < config_.dspark.blocks; ++block)
      bytes += sequence.ring(block).bytes();
  return bytes;
}

}  // namespace cedar::stage
