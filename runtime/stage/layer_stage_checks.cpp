// What a layer_stage refuses before it computes.
#include <algorithm>
#include <unordered_set>

#include "runtime/stage/layer_stage.hpp"
#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

using flow::row_kind;

result<void> layer_stage::check_inputs(const joined_step& step) const {
  const flow::step_table& table = step.table;
  const std::string name = "step " + std::to_string(table.step.value);
  const auto belongs = [&](const flow::row_block& block, std::uint32_t rows) {
    return block.step == table.step && block.spans == table.spans && block.rows_count == rows;
  };
  const row_kind wanted = options_.first_layer == 0 ? row_kind::embedded : row_kind::activation;
  const bool inside_decoder = options_.first_layer > schedule_.decoder_begin();
  if (!step.rows || step.rows->kind != wanted ||
      !belongs(*step.rows, inside_decoder ? table.decoder_count() : table.rows_count()))
    return fail(errc::malformed, name + ": input rows are not those of the step");
  if (const auto planes = view_planes(*step.rows, config_); !planes) return fail(planes.error());
  for (const std::uint32_t layer : engram_layers()) {
    const auto found = std::ranges::find(step.engram, layer, &flow::row_block::layer);
    if (found == step.engram.end() || found->kind != row_kind::engram_rows ||
        !belongs(*found, table.rows_count()) ||
        found->row_bytes != row_bytes(row_kind::engram_rows, config_) ||
        flow::bytes_of(found->payload).size() < std::size_t{found->rows_count} * found->row_bytes)
      return fail(errc::malformed,
                  name + ": no Engram rows of the step for layer " + std::to_string(layer));
  }
  for (const shared_input& input : shared_inputs()) {
    const auto found = std::ranges::find_if(step.shared, [&](const flow::row_block& block) {
      return block.kind == input.kind && block.layer == input.layer && block.step == table.step &&
             block.spans == table.spans;
    });
    if (found == step.shared.end())
      return fail(errc::malformed,
                  name + ": nothing of the step from layer " + std::to_string(input.layer));
  }
  return {};
}

/// What a request of the step begins with; null: with nothing.
const kept_prefix* layer_stage::prefix_of(const flow::step_table& table, request_id request) const {
  const auto use = std::ranges::find(table.prefixes, request, &flow::prefix_use::request);
  if (use == table.prefixes.end()) return nullptr;
  const auto found = prefixes_.find(use->prefix);
  return found == prefixes_.end() ? nullptr : &found->second;
}

result<void> layer_stage::check_span(const flow::row_span& span, const kept_prefix* prefix) const {
  const std::string name = "request " + std::to_string(span.request.value);
  const std::uint64_t end = std::uint64_t{span.first_position} + span.rows_count;
  if (end > options_.context_max)
    return fail(errc::capacity, name + " reaches " + std::to_string(end) +
                                    " positions, the context holds " +
                                    std::to_string(options_.context_max));
  const auto found = sequences_.find(span.request);
  if (found == sequences_.end()) {
    if (!span.begins())
      return fail(errc::mismatch, name + " is unknown here and does not begin at position " +
                                      std::to_string(span.begin));
    const bool whole = span.stored % (granule_ / memory::default_page_entries) == 0;
    if (span.stored > 0 && (prefix == nullptr || prefix->positions() < span.stored || !whole))
      return fail(errc::mismatch, name + " begins with " + std::to_string(span.stored) +
                                      " positions of a prefix that is not here");
    return {};
  }
  if (found->second.written() != span.first_position)
    return fail(errc::mismatch, name + " has " + std::to_string(found->second.written()) +
                                    " rows, the step continues at " +
                                    std::to_string(span.first_position));
  if (found->second.begin() != span.begin || found->second.stored() != span.stored)
    return fail(errc::mismatch, name + " began with another prefix");
  return {};
}

result<void> layer_stage::check_spans(const flow::step_table& table) const {
  std::unordered_set<request_id> seen;
  std::size_t requests = sequences_.size();
  for (const flow::row_span& span : table.spans) {
    if (!seen.insert(span.request).second)
      return fail(errc::malformed,
                  "request " + std::to_string(span.request.value) + " has two spans of rows");
    if (const result<void> fits = check_span(span, prefix_of(table, span.request)); !fits)
      return fits;
    if (!sequences_.contains(span.request)) ++requests;
  }
  if (requests > options_.requests_max)
    return fail(errc::capacity, "the stage would hold " + std::to_string(requests) +
                                    " requests, its bound is " +
                                    std::to_string(options_.requests_max) + " (limits.requests)");
  return {};
}

}  // namespace cedar::stage
