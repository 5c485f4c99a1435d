#include "runtime/stage/engram_stage.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/base/check.hpp"
#include "runtime/model/engram.hpp"
#include "runtime/model/image_tokens.hpp"
#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

engram_stage::engram_stage(const model::model_config& config, model::engram_hash_tables hash,
                           std::vector<model::engram_table_weights> tables,
                           std::vector<std::int32_t> token_map)
    : config_(config),
      hash_(std::move(hash)),
      tables_(std::move(tables)),
      token_map_(std::move(token_map)) {
  CEDAR_REQUIRE(tables_.size() == hash_.modules.size(), "an Engram table for every module");
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

flow::row_block engram_stage::fetch(const flow::step_table& table, std::size_t module,
                                    std::span<const std::int32_t> windows) const {
  const model::engram_module_tables& hash = hash_.modules[module];
  const model::engram_table_weights& weights = tables_[module];
  const std::size_t rows = table.tokens.size();
  kernels::buffer memory(rows * row_bytes(flow::row_kind::engram_rows, config_));
  std::vector<std::uint64_t> addresses(config_.engram_columns());
  std::byte* out = memory.data();
  for (std::size_t row = 0; row < rows; ++row) {
    model::engram_addresses(hash, windows.subspan(row * hash_.max_ngram, hash_.max_ngram),
                            addresses);
    for (const std::uint64_t address : addresses) {
      std::memcpy(out, weights.codes.row_data(address), weights.codes.cols);
      out += weights.codes.cols;
      std::memcpy(out, weights.scales.row_data(address), weights.scales.cols);
      out += weights.scales.cols;
    }
  }
  flow::row_block block =
      make_block(flow::row_kind::engram_rows, table, config_, std::move(memory));
  block.layer = hash.layer;
  return block;
}

result<std::vector<flow::row_block>> engram_stage::run(const flow::step_table& table) const {
  if (tables_.empty()) return std::vector<flow::row_block>{};
  const result<std::vector<std::int32_t>> windows = windows_of(table);
  if (!windows) return fail(windows.error());
  std::vector<flow::row_block> blocks;
  blocks.reserve(tables_.size());
  for (std::size_t module = 0; module < tables_.size(); ++module)
    blocks.push_back(fetch(table, module, *windows));
  return blocks;
}

}  // namespace cedar::stage
