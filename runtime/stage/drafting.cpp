#include "runtime/stage/drafting.hpp"

#include <algorithm>
#include <string>

#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

using flow::row_kind;
using kernels::bf16;
using kernels::matrix_buffer;
using kernels::matrix_view;

namespace {

/// A head that says nothing has no confidence.
float probability_of(const model::draft_token& token) {
  const float confidence = model::confidence_of(token.confidence_logit);
  return confidence >= 0 ? confidence : 0;
}

}  // namespace

/// Taps of all target layers side by side.
result<matrix_buffer<bf16>> drafting::join(const flow::step_table& table,
                                           std::span<const flow::row_block> taps) const {
  std::size_t rows = 0;
  for (const flow::row_span& span : table.spans) rows += tapped_rows(span, config_);
  const std::uint32_t bytes = row_bytes(row_kind::draft_taps, config_);
  matrix_buffer<bf16> joined(rows, drafter_->tap_width());
  if (rows == 0) return joined;
  std::size_t column = 0;
  for (const std::uint32_t layer : config_.dspark.target_layers) {
    const auto block = std::ranges::find_if(taps, [&](const flow::row_block& one) {
      return one.kind == row_kind::draft_taps && one.layer == layer;
    });
    const bool fits = block != taps.end() && block->step == table.step &&
                      block->spans == table.spans && block->rows_count == rows &&
                      block->row_bytes == bytes &&
                      flow::bytes_of(block->payload).size() >= rows * bytes;
    if (!fits)
      return fail(errc::malformed, "step " + std::to_string(table.step.value) +
                                       ": no taps of layer " + std::to_string(layer) +
                                       " that are those of the step");
    const matrix_view<const bf16> part(
        reinterpret_cast<const bf16*>(flow::bytes_of(block->payload).data()), rows, config_.width);
    for (std::size_t row = 0; row < rows; ++row)
      std::ranges::copy(part.row(row), joined.view().row_data(row) + column);
    column += config_.width;
  }
  return joined;
}

/// What the head will know of the requests that are followed.
result<void> drafting::choose_like_the_head(const flow::step_table& table) {
  flow::step_table followed = table;
  const auto is_followed = [&](request_id request) {
    const auto span = std::ranges::find(table.spans, request, &flow::row_span::request);
    return span == table.spans.end() || span->taps != flow::tap_use::none;
  };
  std::erase_if(followed.sampling, [&](const flow::request_sampling& entry) {
    return !flow::has_penalties(entry.options) && !is_followed(entry.request);
  });
  if (const auto begun = chooser_.begin(followed, config_.vocabulary); !begun) return begun;
  auto token = table.tokens.begin();
  for (const flow::row_span& span : table.spans) {
    if (span.taps == flow::tap_use::none && !chooser_.counts(span.request))
      chooser_.forget(span.request);
    for (std::uint32_t i = 0; i < span.rows_count; ++i) chooser_.add_row(span.request, *token++);
  }
  return {};
}

result<void> drafting::extend(const flow::step_table& table,
                              std::span<const flow::row_block> taps) {
  const auto joined = join(table, taps);
  if (!joined) return fail(joined.error());
  if (const auto known = drafter_->extend(table.step, table.spans, joined->view()); !known)
    return known;
  return choose_like_the_head(table);
}

result<void> drafting::apply(const flow::verdict& verdict) {
  for (const flow::commitment& one : verdict.commitments)
    if (one.finished) chooser_.forget(one.request);
  return drafter_->apply(verdict);
}

result<std::vector<flow::draft>> drafting::run(std::span<const flow::draft_order> orders) {
  std::vector<flow::draft_order> known;
  for (const flow::draft_order& order : orders)
    if (drafter_->knows(order.request)) known.push_back(order);
  std::vector<token_id> last;
  for (const flow::draft_order& order : known) last.push_back(order.last);
  // The next step's first row cuts the chooser back to what stands.
  const auto blocks = drafter_->run(
      known, [&](std::size_t i, std::uint32_t position, std::span<const float> logits) {
        chooser_.add_row(known[i].request, last[i]);
        return last[i] = chooser_.choose(known[i].request, position, logits);
      });
  if (!blocks) return fail(blocks.error());
  std::vector<flow::draft> out;
  auto block = blocks->begin();
  for (const flow::draft_order& order : orders) {
    flow::draft& made = out.emplace_back(flow::draft{order.request, order.position, {}, {}});
    if (block == blocks->end() || block->request != order.request) continue;
    const std::size_t count = std::min<std::size_t>(order.tokens_max, block->tokens.size());
    for (const model::draft_token& token : std::span(block->tokens).first(count)) {
      made.tokens.push_back(token.token);
      made.confidences.push_back(probability_of(token));
    }
    ++block;
  }
  return out;
}

void drafting::clear() {
  drafter_->clear();
  chooser_.clear();
}

}  // namespace cedar::stage
