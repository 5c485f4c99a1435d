#include "runtime/stage/engram_blocks.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/base/buffer.hpp"
#include "kernels/base/check.hpp"
#include "runtime/model/engram.hpp"
#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

using flow::row_kind;

namespace {

std::string text_of_shard(const flow::step_table& table, const model::engram_shard& shard) {
  return "step " + std::to_string(table.step.value) + ": Engram rows for layer " +
         std::to_string(shard.layer) + " from shard " + std::to_string(shard.number);
}

/// The part of `shard` among `blocks`; null: there is none that fits the step and the model.
const flow::row_block* part_of(const flow::step_table& table, const model::model_config& config,
                               const model::engram_shard& shard,
                               std::span<const flow::row_block> blocks) {
  const auto found = std::ranges::find_if(blocks, [&](const flow::row_block& block) {
    return block.kind == row_kind::engram_slots && block.layer == shard.layer &&
           block.slice == shard.number;
  });
  const bool fits =
      found != blocks.end() && found->step == table.step && found->spans == table.spans &&
      found->row_bytes == row_bytes(row_kind::engram_slots, config) &&
      flow::bytes_of(found->payload).size() >= std::size_t{found->rows_count} * found->row_bytes;
  return fits ? &*found : nullptr;
}

}  // namespace

flow::row_block make_engram_slots(const flow::step_table& table, const model::model_config& config,
                                  const model::engram_shard& shard,
                                  const model::engram_table_weights& rows,
                                  std::span<const std::uint64_t> addresses) {
  CEDAR_REQUIRE(rows.codes.rows == shard.rows_count() && rows.scales.rows == shard.rows_count(),
                "the rows of the shard");
  const auto held = static_cast<std::size_t>(std::ranges::count_if(
      addresses, [&](std::uint64_t address) { return shard.holds(address); }));
  kernels::buffer memory(held * row_bytes(row_kind::engram_slots, config));
  std::byte* slot = memory.data();
  std::byte* out = slot + held * sizeof(std::int32_t);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (!shard.holds(addresses[i])) continue;
    const auto place = static_cast<std::int32_t>(i);
    std::memcpy(slot, &place, sizeof(place));
    slot += sizeof(place);
    out = model::copy_engram_row(rows, addresses[i] - shard.first_row, out);
  }
  flow::row_block block = make_block(row_kind::engram_slots, table, config, std::move(memory));
  block.layer = shard.layer;
  block.slice = shard.number;
  return block;
}

result<flow::row_block> join_engram_slots(const flow::step_table& table,
                                          const model::model_config& config, std::uint32_t layer,
                                          std::span<const model::engram_shard> shards,
                                          std::span<const flow::row_block> blocks) {
  const std::size_t slots = std::size_t{table.rows_count()} * config.engram_columns();
  const std::size_t bytes = model::engram_row_bytes(config);
  kernels::buffer memory(slots * bytes);
  std::vector<bool> filled(slots);
  std::size_t left = slots;
  for (const model::engram_shard& shard : shards) {
    if (shard.layer != layer) continue;
    const flow::row_block* part = part_of(table, config, shard, blocks);
    if (part == nullptr)
      return fail(errc::malformed, text_of_shard(table, shard) + " are not those of the step");
    const std::byte* places = flow::bytes_of(part->payload).data();
    const std::byte* rows = places + part->rows_count * sizeof(std::int32_t);
    for (std::size_t i = 0; i < part->rows_count; ++i) {
      std::int32_t place = 0;
      std::memcpy(&place, places + i * sizeof(place), sizeof(place));
      const auto slot = static_cast<std::size_t>(place);
      if (place < 0 || slot >= slots || filled[slot])
        return fail(errc::malformed, text_of_shard(table, shard) + " have place " +
                                         std::to_string(place) + " of " + std::to_string(slots) +
                                         ", which is another's or none");
      filled[slot] = true;
      std::memcpy(memory.data() + slot * bytes, rows + i * bytes, bytes);
    }
    left -= part->rows_count;
  }
  if (left > 0)
    return fail(errc::malformed, "step " + std::to_string(table.step.value) + ": " +
                                     std::to_string(left) + " of " + std::to_string(slots) +
                                     " Engram rows for layer " + std::to_string(layer) +
                                     " came from no shard");
  flow::row_block block = make_block(row_kind::engram_rows, table, config, std::move(memory));
  block.layer = layer;
  return block;
}

}  // namespace cedar::stage
