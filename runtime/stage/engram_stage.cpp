#include "runtime/stage/engram_stage.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"
#include "runtime/model/engram.hpp"
#include "runtime/model/image_tokens.hpp"
#include "runtime/stage/engram_blocks.hpp"
#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

engram_stage::engram_stage(const model::model_config& config, model::engram_hash_tables hash,
                           std::vector<engram_part> parts, std::vector<std::int32_t> token_map)
    : config_(config),
      hash_(std::move(hash)),
      parts_(std::move(parts)),
      token_map_(std::move(token_map)) {
  CEDAR_REQUIRE(token_map_.size() == config.vocabulary, "a compressed id for every token");
}

result<std::vector<std::int32_t>> engram_stage::windows_of(const flow::step_table& table) const {
  for (const auto* ids : {&table.tokens, &table.lookback})
    for (const token_id token : *ids)
      if (token < 0 || static_cast<std::uint32_t>(token) >= config_.vocabulary)
        return fail(errc::invalid_argument, "token " + std::to_string(token) +
                                                " is outside the vocabulary of " +
                                                std::to_string(config_.vocabulary));
  const std::vector<std::uint8_t> rows_image = model::image_flags(config_, table.tokens);
  const std::vector<std::uint8_t> lookback_image = model::image_flags(config_, table.lookback);
  const std::size_t width = hash_.max_ngram;
  std::vector<std::int32_t> windows(table.tokens.size() * width);
  std::size_t row = 0;
  std::size_t before = 0;
  for (const flow::row_span& span : table.spans) {
    const std::size_t lookback = std::min(span.first_position, config_.engram_lookback());
    if (before + lookback > table.lookback.size() || row + span.rows_count > table.tokens.size())
      return fail(errc::invalid_argument,
                  "step " + std::to_string(table.step.value) + ": token ids do not cover the rows");
    const model::engram_tokens tokens{
        .lookback = std::span(table.lookback).subspan(before, lookback),
        .rows = std::span(table.tokens).subspan(row, span.rows_count),
        .lookback_image = std::span(lookback_image).subspan(before, lookback),
        .rows_image = std::span(rows_image).subspan(row, span.rows_count)};
    model::engram_windows(hash_, token_map_, tokens,
                          std::span(windows).subspan(row * width, span.rows_count * width));
    before += lookback;
    row += span.rows_count;
  }
  return windows;
}

const model::engram_module_tables& engram_stage::module_before(std::uint32_t layer) const {
  const auto found = std::ranges::find(hash_.modules, layer, &model::engram_module_tables::layer);
  CEDAR_REQUIRE(found != hash_.modules.end(),
                "no Engram module before layer " + std::to_string(layer));
  return *found;
}

std::vector<std::uint64_t> engram_stage::addresses_of(const model::engram_module_tables& module,
                                                      std::span<const std::int32_t> windows) const {
  const std::size_t columns = config_.engram_columns();
  const std::size_t rows = windows.size() / hash_.max_ngram;
  std::vector<std::uint64_t> addresses(rows * columns);
  for (std::size_t row = 0; row < rows; ++row)
    model::engram_addresses(module, windows.subspan(row * hash_.max_ngram, hash_.max_ngram),
                            std::span(addresses).subspan(row * columns, columns));
  return addresses;
}

std::uint64_t engram_stage::table_rows_in(const flow::row_block& block) const noexcept {
  const bool whole = block.kind == flow::row_kind::engram_rows;
  return std::uint64_t{block.rows_count} * (whole ? config_.engram_columns() : 1);
}

result<std::vector<std::uint64_t>> engram_stage::addresses(const flow::step_table& table,
                                                           std::uint32_t layer) const {
  const result<std::vector<std::int32_t>> windows = windows_of(table);
  if (!windows) return fail(windows.error());
  return addresses_of(module_before(layer), *windows);
}

flow::row_block engram_stage::fetch(const flow::step_table& table, const engram_part& part,
                                    std::span<const std::int32_t> windows) const {
  const model::engram_module_tables& module = module_before(part.shard.layer);
  const std::vector<std::uint64_t> addresses = addresses_of(module, windows);
  if (!part.shard.is_whole(module.rows))
    return make_engram_slots(table, config_, part.shard, part.rows, addresses);
  kernels::buffer memory(addresses.size() * model::engram_row_bytes(config_));
  std::byte* out = memory.data();
  for (const std::uint64_t address : addresses)
    out = model::copy_engram_row(part.rows, address, out);
  flow::row_block block =
      make_block(flow::row_kind::engram_rows, table, config_, std::move(memory));
  block.layer = module.layer;
  return block;
}

result<std::vector<flow::row_block>> engram_stage::run(const flow::step_table& table) const {
  if (parts_.empty()) return std::vector<flow::row_block>{};
  const result<std::vector<std::int32_t>> windows = windows_of(table);
  if (!windows) return fail(windows.error());
  std::vector<flow::row_block> blocks;
  blocks.reserve(parts_.size());
  for (const engram_part& part : parts_) blocks.push_back(fetch(table, part, *windows));
  return blocks;
}

}  // namespace cedar::stage
