#include "runtime/stage/shared_blocks.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/base/check.hpp"
#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

using flow::row_kind;

namespace {

constexpr std::int32_t padding = -1;

std::string text_of(const flow::row_block& block) {
  return "step " + std::to_string(block.step.value) + ": " +
         std::string(flow::kind_of(flow::message(block))) + " of layer " +
         std::to_string(block.layer);
}

flow::row_block new_block(row_kind kind, const shared_context& c, const flow::step_table& table,
                          std::uint32_t layer, std::size_t rows, kernels::buffer memory) {
  flow::row_block block;
  block.kind = kind;
  block.step = table.step;
  block.epoch = table.epoch;
  block.layer = layer;
  block.spans = table.spans;
  block.rows_count = static_cast<std::uint32_t>(rows);
  block.row_bytes = row_bytes(kind, c.config);
  block.payload = rows == 0 ? nullptr : flow::freeze(std::move(memory));
  return block;
}

/// A list of numbers for each row, padded to the block's row.
template <class Lists>
flow::row_block new_lists_block(row_kind kind, const shared_context& c,
                                const flow::step_table& table, std::uint32_t layer,
                                const Lists& lists) {
  const std::size_t width = row_bytes(kind, c.config) / sizeof(std::int32_t);
  kernels::buffer memory(lists.size() * width * sizeof(std::int32_t));
  auto* row = reinterpret_cast<std::int32_t*>(memory.data());
  for (const auto& list : lists) {
    CEDAR_ASSERT(list.size() <= width, "more choices than the configuration allows");
    std::fill(std::ranges::copy(list, row).out, row + width, padding);
    row += width;
  }
  return new_block(kind, c, table, layer, lists.size(), std::move(memory));
}

result<void> check_layout(const flow::row_block& block, const shared_context& c, std::size_t rows) {
  if (block.layer < c.schedule.layers() && block.rows_count == rows &&
      block.row_bytes == row_bytes(block.kind, c.config) &&
      flow::bytes_of(block.payload).size() >= std::size_t{block.rows_count} * block.row_bytes)
    return {};
  return fail(errc::malformed, text_of(block) + ": not the rows of its spans");
}

/// Reads the padded lists of a block: strictly ascending, entry i of row r below bounds[r].
result<selection> lists_of(const flow::row_block& block, const shared_context& c,
                           const std::vector<std::uint32_t>& bounds) {
  if (const auto fits = check_layout(block, c, bounds.size()); !fits) return fail(fits.error());
  const std::size_t width = block.row_bytes / sizeof(std::int32_t);
  selection out(bounds.size());
  if (bounds.empty()) return out;
  const std::byte* at = block.payload->data();
  std::vector<std::int32_t> row(width);
  for (std::size_t r = 0; r < bounds.size(); ++r, at += block.row_bytes) {
    std::memcpy(row.data(), at, block.row_bytes);
    const auto end = std::ranges::find(row, padding);
    std::int64_t previous = padding;
    for (auto entry = row.begin(); entry != end; ++entry) {
      if (*entry <= previous || *entry >= std::int64_t{bounds[r]})
        return fail(errc::malformed, text_of(block) + ": row " + std::to_string(r) + " holds " +
                                         std::to_string(*entry) + " after " +
                                         std::to_string(previous) + ", below " +
                                         std::to_string(bounds[r]) + " and ascending is allowed");
      previous = *entry;
      out[r].push_back(static_cast<std::uint32_t>(*entry));
    }
  }
  return out;
}

/// Entries visible to each row of the block's layer.
result<std::vector<std::uint32_t>> visible_of(const flow::row_block& block,
                                              const shared_context& c) {
  if (block.layer >= c.schedule.layers() || c.schedule[block.layer].ratio == 0)
    return fail(errc::malformed, text_of(block) + ": the layer has no global entries");
  std::vector<std::uint32_t> visible = positions_of(block.spans, c.schedule, block.layer);
  for (std::uint32_t& position : visible) position = (position + 1) / c.schedule[block.layer].ratio;
  return visible;
}

}  // namespace

std::vector<std::uint32_t> positions_of(std::span<const flow::row_span> spans,
                                        const model::schedule& schedule, std::uint32_t layer) {
  std::vector<std::uint32_t> positions;
  for (const flow::row_span& span : spans)
    for (std::uint32_t i = layer < schedule.decoder_begin() ? 0 : span.decoder_from();
         i < span.rows_count; ++i)
      positions.push_back(span.first_position + i);
  return positions;
}

flow::row_block make_entries_block(row_kind kind, const shared_context& c,
                                   const flow::step_table& table, std::uint32_t owner,
                                   const step_rows& rows) {
  const std::uint32_t ratio = c.schedule[owner].ratio;
  const std::size_t bytes = row_bytes(kind, c.config);
  std::size_t count = 0;
  for (const span_rows& span : rows.spans) count += span.span.entries_count(ratio);
  kernels::buffer memory(count * bytes);
  std::byte* out = memory.data();
  for (const span_rows& span : rows.spans) {
    const memory::global_cache& cache = span.sequence->global(owner);
    const std::uint32_t first = span.span.first_entry(ratio);
    for (std::uint32_t i = first; i < first + span.span.entries_count(ratio); ++i, out += bytes)
      std::memcpy(out, kind == row_kind::shared_kv ? cache.main_entry(i) : cache.index_key(i),
                  bytes);
  }
  return new_block(kind, c, table, owner, count, std::move(memory));
}

flow::row_block make_selection_block(row_kind kind, const shared_context& c,
                                     const flow::step_table& table, std::uint32_t layer,
                                     const selection& chosen) {
  return new_lists_block(kind, c, table, layer, chosen);
}

flow::row_block make_candidates_block(const shared_context& c, const flow::step_table& table,
                                      std::uint32_t layer,
                                      std::span<const kernels::candidate_pool> pools) {
  selection blocks;
  for (const kernels::candidate_pool& pool : pools) blocks.push_back(pool.blocks);
  return new_lists_block(row_kind::candidates, c, table, layer, blocks);
}

result<kernels::matrix_view<const std::byte>> entries_of(const flow::row_block& block,
                                                         const shared_context& c) {
  std::size_t count = 0;
  if (block.layer < c.schedule.layers() && c.schedule[block.layer].ratio > 0)
    for (const flow::row_span& span : block.spans)
      count += span.entries_count(c.schedule[block.layer].ratio);
  if (const auto fits = check_layout(block, c, count); !fits) return fail(fits.error());
  return kernels::matrix_view<const std::byte>{flow::bytes_of(block.payload).data(), count,
                                               block.row_bytes};
}

result<selection> selection_of(const flow::row_block& block, const shared_context& c) {
  const auto visible = visible_of(block, c);
  if (!visible) return fail(visible.error());
  return lists_of(block, c, *visible);
}

result<std::vector<kernels::candidate_pool>> candidates_of(const flow::row_block& block,
                                                           const shared_context& c) {
  auto bounds = visible_of(block, c);
  if (!bounds) return fail(bounds.error());
  const std::uint32_t size = c.config.candidate_block_size;
  for (std::uint32_t& bound : *bounds) bound = (bound + size - 1) / size;
  auto lists = lists_of(block, c, *bounds);
  if (!lists) return fail(lists.error());
  std::vector<kernels::candidate_pool> out;
  for (auto& blocks : *lists) out.push_back({size, std::move(blocks)});
  return out;
}

}  // namespace cedar::stage
