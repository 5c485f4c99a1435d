// What a layer_stage refuses before it computes.
#include <algorithm>

#include "runtime/stage/engram_blocks.hpp"
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

/// From here on a module's rows are one block, whatever they came in.
result<void> layer_stage::join_engram(joined_step& step) const {
  for (const std::uint32_t layer : engram_layers()) {
    if (!std::ranges::count(options_.engram_shards, layer, &model::engram_shard::layer)) continue;
    auto whole = join_engram_slots(step.table, config_, layer, options_.engram_shards, step.engram);
    if (!whole) return fail(whole.error());
    std::erase_if(step.engram, [&](const flow::row_block& block) { return block.layer == layer; });
    step.engram.push_back(std::move(*whole));
  }
  return {};
}

}  // namespace cedar::stage
