#include "runtime/stage/head_stage.hpp"

#include <cstring>

#include "kernels/ops/selection.hpp"
#include "runtime/model/context.hpp"
#include "runtime/model/head.hpp"
#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

using kernels::bf16;
using kernels::matrix_view;

namespace {

/// One proposal a wanted row, in step order.
std::vector<flow::proposed_token> propose(const flow::step_table& table,
                                          matrix_view<const float> logits) {
  std::vector<flow::proposed_token> tokens;
  tokens.reserve(logits.rows);
  for (const flow::row_span& span : table.spans)
    for (std::uint32_t i = span.logits_from; i < span.rows_count; ++i) {
      const std::span<const float> row = logits.row(tokens.size());
      const token_id token = kernels::arg_max(row);
      tokens.push_back(
          {span.request, span.first_position + i, token, model::log_probability(row, token)});
    }
  return tokens;
}

}  // namespace

result<flow::proposal> head_stage::run(const flow::step_table& table, const flow::row_block& input,
                                       const model::taps& probes) {
  const std::size_t rows = table.logits_count();
  const std::uint32_t bytes = row_bytes(flow::row_kind::head_input, config_);
  const bool fits = input.kind == flow::row_kind::head_input && input.step == table.step &&
                    input.spans == table.spans && input.rows_count == rows &&
                    input.row_bytes == bytes &&
                    flow::bytes_of(input.payload).size() >= rows * bytes;
  if (!fits)
    return fail(errc::malformed, "step " + std::to_string(table.step.value) +
                                     ": the head's input is not that of the step");
  flow::proposal out;
  out.step = table.step;
  out.epoch = table.epoch;
  if (rows == 0) return out;

  scratch_.reset();
  const model::context c{backend_, config_, no_rotary_, scratch_, probes, {}, {}};
  const matrix_view<const bf16> collapsed(reinterpret_cast<const bf16*>(input.payload->data()),
                                          rows, config_.width);
  const matrix_view<float> logits = model::run_head(c, weights_, collapsed);
  out.tokens = propose(table, logits);
  if (table.want_logits) {
    kernels::buffer copy(rows * logits.cols * sizeof(float));
    std::memcpy(copy.data(), logits.data, copy.bytes());
    out.logits = flow::freeze(std::move(copy));
  }
  return out;
}

}  // namespace cedar::stage
