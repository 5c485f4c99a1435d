#include "runtime/stage/head_stage.hpp"

#include <cstring>
#include <limits>

#include "runtime/model/context.hpp"
#include "runtime/model/head.hpp"
#include "runtime/model/image_tokens.hpp"
#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

using kernels::bf16;
using kernels::matrix_view;

/// One proposal a wanted row, in step order. Runs over all rows, because the chooser learns tokens.
std::vector<flow::proposed_token> head_stage::propose(const flow::step_table& table,
                                                      matrix_view<const float> logits) {
  std::vector<flow::proposed_token> tokens;
  tokens.reserve(logits.rows);
  auto next = table.tokens.begin();
  for (const flow::row_span& span : table.spans)
    for (std::uint32_t i = 0; i < span.rows_count; ++i) {
      chooser_.add_row(span.request, *next++);
      if (i < span.logits_from) continue;
      const std::span<const float> row = logits.row(tokens.size());
      const std::uint32_t position = span.first_position + i;
      const token_id token = chooser_.choose(span.request, position, row);
      tokens.push_back({span.request, position, token, model::log_probability(row, token)});
    }
  return tokens;
}

void head_stage::apply(const flow::verdict& verdict) {
  for (const flow::commitment& one : verdict.commitments)
    if (one.finished) chooser_.forget(one.request);
}

result<flow::proposal> head_stage::run(const flow::step_table& table, const flow::row_block& input,
                                       const model::taps& probes) {
  const std::size_t rows = table.logits_count();
  const std::uint32_t bytes = row_bytes(flow::row_kind::head_input, config_);
  const bool fits = input.kind == flow::row_kind::head_input && input.step == table.step &&
                    input.spans == table.spans && input.rows_count == rows &&
                    table.tokens.size() == table.rows_count() && input.row_bytes == bytes &&
                    flow::bytes_of(input.payload).size() >= rows * bytes;
  if (!fits)
    return fail(errc::malformed, "step " + std::to_string(table.step.value) +
                                     ": the head's input is not that of the step");
  if (const result<void> begun = chooser_.begin(table, config_.vocabulary); !begun)
    return fail(begun.error());
  flow::proposal out;
  out.step = table.step;
  out.epoch = table.epoch;
  if (rows == 0) {
    propose(table, {});
    return out;
  }

  scratch_.reset();
  const model::context c{backend_, config_, no_rotary_, scratch_, probes, {}, {}};
  const matrix_view<const bf16> collapsed(reinterpret_cast<const bf16*>(input.payload->data()),
                                          rows, config_.width);
  const matrix_view<float> logits = model::run_head(c, weights_, collapsed);
  if (table.want_logits) {
    kernels::buffer copy(rows * logits.cols * sizeof(float));
    std::memcpy(copy.data(), logits.data, copy.bytes());
    out.logits = flow::freeze(std::move(copy));
  }
  // A generated image token would be a row of an image that nobody sent.
  if (const token_id image = model::image_token_of(config_); image >= 0)
    for (std::size_t row = 0; row < rows; ++row)
      logits.row(row)[static_cast<std::size_t>(image)] = -std::numeric_limits<float>::infinity();
  out.tokens = propose(table, logits);
  return out;
}

}  // namespace cedar::stage
