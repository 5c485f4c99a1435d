#include "runtime/stage/entry_selection.hpp"

#include <algorithm>
#include <limits>

#include "runtime/model/indexer.hpp"

namespace cedar::stage {

using kernels::bf16;
using kernels::matrix_view;

namespace {

/// Entries visible to a query at `position`.
std::uint32_t visible_count(std::int32_t position, std::uint32_t ratio) {
  return (static_cast<std::uint32_t>(position) + 1) / ratio;
}

std::size_t pages_of(std::size_t entries, std::size_t page_entries) {
  return (entries + page_entries - 1) / page_entries;
}

/// Scores of every row against all entries that it sees, for a probe: -infinity beyond them.
void offer_scores(const model::context& c, const index_source& source, const step_rows& rows,
                  const model::index_query& query, std::uint32_t longest) {
  if (!c.probes.wants(source.layer, "index.score")) return;
  const auto scores = c.scratch.take<bf16>(c.rows(), longest);
  std::fill_n(scores.data, c.rows() * longest,
              kernels::to_bf16(-std::numeric_limits<float>::infinity()));
  for (const span_rows& span : rows.spans)
    for (std::size_t row = span.first_row; row < span.first_row + span.span.rows_count; ++row) {
      const std::uint32_t visible = visible_count(c.positions[row], source.schedule.ratio);
      model::score_row(c, query, row,
                       keys_of(c.scratch, span.sequence->global(*source.schedule.owner), visible),
                       scores.row(row).first(visible));
    }
  c.probes.offer(source.layer, "index.score", scores);
}

}  // namespace

model::index_keys keys_of(kernels::arena& scratch, const memory::global_cache& cache,
                          std::uint32_t entries) {
  const std::uint32_t run = cache.page_entries();
  const auto pages = scratch.take<const std::byte*>(1, pages_of(entries, run));
  for (std::uint32_t page = 0; page < pages.cols; ++page)
    pages.data[page] = cache.index_key(page * run);
  return {pages.row(0), run};
}

model::index_keys pool_keys(kernels::arena& scratch, const memory::global_cache& cache,
                            const kernels::candidate_pool& pool, std::uint32_t visible) {
  if (pool.blocks.empty()) return {};
  const std::uint32_t size = pool.block_size;
  const std::uint32_t run = cache.page_entries() % size == 0 ? size : 1;
  const auto keys = scratch.take<const std::byte*>(1, pool.blocks.size() * (size / run));
  std::size_t count = 0;
  for (const std::uint32_t block : pool.blocks)
    for (std::uint32_t j = block * size; j < std::min((block + 1) * size, visible); j += run)
      keys.data[count++] = cache.index_key(j);
  return {keys.row(0).first(count), run};
}

void offer_selection(const model::context& c, std::uint32_t layer, const selection& chosen) {
  if (!c.probes.wants(layer, "index.topk")) return;
  std::size_t width = 0;
  for (const auto& row : chosen) width = std::max(width, row.size());
  const auto table = c.scratch.take<std::int32_t>(chosen.size(), width);
  for (std::size_t row = 0; row < chosen.size(); ++row) {
    std::ranges::fill(table.row(row), -1);
    std::ranges::copy(chosen[row], table.row_data(row));
  }
  c.probes.offer(layer, "index.topk", matrix_view<const std::int32_t>(table));
}

void select_entries(const model::context& c, const index_source& source,
                    const model::indexer_weights& weights, const step_rows& rows,
                    matrix_view<const bf16> x, matrix_view<const bf16> compressed,
                    step_selections& selections) {
  const auto& [config, schedule, layer] = source;
  const auto query = model::make_index_query(c, layer, weights, x, compressed);
  selection& chosen = selections.by_source[layer];
  chosen.resize(c.rows());
  if (schedule.makes_candidates) selections.candidates.resize(c.rows());

  std::uint32_t longest = 0;
  for (const span_rows& span : rows.spans)
    longest = std::max(longest, span.sequence->global(*schedule.owner).written());
  const auto scores = c.scratch.take<bf16>(1, longest).row(0);
  for (const span_rows& span : rows.spans) {
    const memory::global_cache& cache = span.sequence->global(*schedule.owner);
    const auto keys =
        schedule.uses_candidates ? model::index_keys{} : keys_of(c.scratch, cache, cache.written());
    for (std::size_t i = 0; i < span.span.rows_count; ++i) {
      const std::size_t row = span.first_row + i;
      const std::uint32_t visible = visible_count(c.positions[row], schedule.ratio);
      if (schedule.uses_candidates) {
        const kernels::arena::mark scope(c.scratch);
        const kernels::candidate_pool& pool = selections.candidates.at(row);
        const auto row_scores = scores.first(kernels::pool_size(pool, visible));
        model::score_row(c, query, row, pool_keys(c.scratch, cache, pool, visible), row_scores);
        kernels::select_top_k_in_pool(row_scores, pool, visible, config.index_topk, chosen[row]);
        continue;
      }
      const auto row_scores = scores.first(visible);
      model::score_row(c, query, row, {keys.runs.first(pages_of(visible, keys.run)), keys.run},
                       row_scores);
      if (schedule.makes_candidates)
        kernels::select_candidates(row_scores, config.candidate_block_size, config.candidate_blocks,
                                   selections.candidates[row]);
      kernels::select_top_k(row_scores, config.index_topk, chosen[row]);
    }
  }
  offer_scores(c, source, rows, query, longest);
  offer_selection(c, layer, chosen);
}

}  // namespace cedar::stage
