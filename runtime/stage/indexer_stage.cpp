#include "runtime/stage/indexer_stage.hpp"

#include <algorithm>

#include "runtime/model/compressor.hpp"
#include "runtime/model/owner_ratios.hpp"
#include "runtime/stage/entry_selection.hpp"
#include "runtime/stage/layer_stage.hpp"

namespace cedar::stage {

using kernels::bf16;

std::size_t key_pages_needed(const model::schedule& schedule, const indexer_options& options) {
  const model::index_shard& shard = options.shard;
  const std::uint64_t per_page = memory::default_page_entries;
  const auto pages_of = [&](std::uint64_t entries) { return (entries + per_page - 1) / per_page; };
  const std::uint32_t ratio = schedule[shard.owner].ratio;
  const std::uint64_t of_granule = model::ratios_lcm(schedule) / ratio;  // pages, of all shards
  const auto part_of = [&](std::uint64_t granules) {
    return granules / shard.parts * of_granule +
           (granules % shard.parts * of_granule + shard.parts - 1) / shard.parts;
  };
  // What a sequence may have beyond its part: a block, a page that it begins, one that it copies.
  const std::uint64_t more = pages_of(shard.block_entries) + 2;
  const std::uint64_t of_requests =
      options.requests_max * pages_of(shard.count(options.context_max / ratio));
  const std::uint64_t prefixes = options.prefix_granules;
  const std::uint64_t kept = prefixes == 0 ? 0 : part_of(prefixes) + prefixes * more;
  if (!options.kv_granules) return of_requests + kept;
  return std::min(of_requests, part_of(*options.kv_granules) + options.requests_max * more) + kept;
}

indexer_stage::indexer_stage(const kernels::backend& backend, const model::model_config& config,
                             const model::schedule& schedule, const indexer_options& options)
    : backend_(backend),
      config_(config),
      schedule_(schedule),
      options_(options),
      pool_(page_layout_of(config, false, true), key_pages_needed(schedule, options)),
      sequences_({options.requests_max, options.context_max,
                  memory::default_page_entries * model::ratios_lcm(schedule)},
                 [this] {
                   const model::index_shard& shard = options_.shard;
                   return sequence_state(shard, schedule_[shard.owner].ratio, pool_);
                 }) {}

result<void> indexer_stage::extend(const flow::step_table& table, const flow::row_block* keys) {
  const std::string name = "step " + std::to_string(table.step.value);
  sequences_.drop(table.dropped);
  if (const auto checked = sequences_.check(table); !checked)
    return fail(checked.error().with(name));
  kernels::matrix_view<const std::byte> rows;
  if (keys != nullptr) {
    const auto read = keys_of_shard(*keys, {config_, schedule_}, options_.shard);
    if (!read) return fail(read.error());
    if (keys->step != table.step || keys->spans != table.spans)
      return fail(errc::malformed, name + ": index keys are not those of the step");
    rows = *read;
  }
  const auto appended = append(table, rows);
  if (appended) return {};
  sequences_.take_back(table);
  return fail(appended.error().with(name));
}

result<void> indexer_stage::append(const flow::step_table& table,
                                   kernels::matrix_view<const std::byte> keys) {
  const model::index_shard& shard = options_.shard;
  const std::uint32_t ratio = schedule_[shard.owner].ratio;
  std::size_t first = 0;
  for (const flow::row_span& span : table.spans) {
    const auto sequence = sequences_.open(table, span);
    if (!sequence) return fail(sequence.error());
    const std::uint32_t begin = shard.count(span.first_entry(ratio));
    const std::size_t count =
        shard.count(span.first_entry(ratio) + span.entries_count(ratio)) - begin;
    if (count == 0) continue;
    memory::global_cache& cache = (*sequence)->global(shard.owner);
    if (cache.written() != begin)
      return fail(errc::mismatch, "request " + std::to_string(span.request.value) + " has " +
                                      std::to_string(cache.written()) + " index keys instead of " +
                                      std::to_string(begin));
    const auto rows = keys.rows_from(first, count);
    if (const auto kept = cache.append({rows.data, count, 0}, rows); !kept) return kept;
    first += count;
  }
  return {};
}

result<flow::row_block> indexer_stage::answer(const flow::row_block& request) {
  const shared_context c{config_, schedule_};
  const auto asked = questions_of(request, c, options_.shard);
  if (!asked) return fail(asked.error());
  std::vector<index_findings> found;
  for (std::size_t row = 0; row < asked->rows.size(); ++row) {
    const asking_row& asking = asked->rows[row];
    sequence_state* const sequence = sequences_.find(asking.request);
    const std::uint32_t wanted = options_.shard.count(asking.visible);
    const std::uint32_t written =
        sequence == nullptr ? 0 : sequence->global(options_.shard.owner).written();
    if (written < wanted)
      return fail(errc::mismatch, "step " + std::to_string(request.step.value) + ": request " +
                                      std::to_string(asking.request.value) + " has " +
                                      std::to_string(written) + " index keys here, a query needs " +
                                      std::to_string(wanted));
    found.push_back(find(request, *asked, row, sequence->global(options_.shard.owner)));
  }
  return make_choice_block(c, request, found);
}

/// The best entries for a row, and the best blocks if its source makes candidates.
index_findings indexer_stage::find(const flow::row_block& request, const index_questions& asked,
                                   std::size_t row, const memory::global_cache& cache) {
  const model::index_shard& shard = options_.shard;
  const std::size_t heads = config_.index_heads;
  const std::uint32_t here = shard.count(asked.rows[row].visible);
  const bool restricted = !asked.blocks.empty();
  scratch_.reset();
  kernels::candidate_pool pool{config_.candidate_block_size, {}};
  if (restricted)
    for (const std::uint32_t block : asked.blocks[row]) pool.blocks.push_back(block / shard.parts);
  const std::size_t count = restricted ? kernels::pool_size(pool, here) : here;
  const model::index_keys keys =
      restricted ? pool_keys(scratch_, cache, pool, here) : keys_of(scratch_, cache, here);
  const auto scores = scratch_.take<bf16>(1, count).row(0);
  backend_.index_scores({scores, asked.queries.rows_from(row * heads, heads),
                         asked.weights.row(row), keys.runs, config_.index_head_dim, keys.run});
  index_findings out;
  std::vector<std::uint32_t> places;  // among the scores
  kernels::select_top_k(scores, config_.index_topk, places);
  for (const std::uint32_t place : places) {
    // Blocks of a pool are whole but for the newest, which is the last.
    const std::uint32_t at = restricted ? pool.blocks[place / pool.block_size] * pool.block_size +
                                              place % pool.block_size
                                        : place;
    out.entries.push_back({shard.entry(at), scores[place]});
  }
  if (schedule_[request.layer].makes_candidates) choose_blocks(scores, out);
  return out;
}

/// A block's score is the highest of its entries'; whether it is a row's newest, its source knows.
void indexer_stage::choose_blocks(std::span<const bf16> scores, index_findings& out) const {
  const std::size_t size = config_.candidate_block_size;
  std::vector<bf16> best;
  for (std::size_t first = 0; first < scores.size(); first += size)
    best.push_back(
        *std::ranges::max_element(scores.subspan(first, std::min(size, scores.size() - first)), {},
                                  [](bf16 score) { return kernels::to_float(score); }));
  std::vector<std::uint32_t> places;
  kernels::select_top_k(best, config_.candidate_blocks, places);
  for (const std::uint32_t place : places)
    out.blocks.push_back({options_.shard.block(place), best[place]});
}

}  // namespace cedar::stage
