#include "runtime/stage/index_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/model/compressor.hpp"
#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

using flow::row_kind;
using kernels::bf16;
using kernels::matrix_view;

namespace {

constexpr std::int32_t no_index = -1;

std::string text_of_index(const flow::row_block& block) {
  return "step " + std::to_string(block.step.value) + ": " +
         std::string(flow::kind_of(flow::message(block))) + " of layer " +
         std::to_string(block.layer);
}

/// Planes of queries: what needs alignment comes first.
template <class Block, class Weight, class Byte>
struct query_planes {
  matrix_view<Block> blocks;  ///< [rows, blocks]; index_query: no columns
  matrix_view<Weight> weights;  ///< [rows, heads]
  matrix_view<Byte> queries;  ///< [rows * heads, bytes]

  query_planes(Byte* memory, row_kind kind, std::size_t rows, const model::model_config& config) {
    const std::size_t heads = config.index_heads;
    const std::size_t blocks_count = kind == row_kind::pool_query ? config.candidate_blocks : 0;
    Byte* of_weights = memory + rows * blocks_count * sizeof(Block);
    blocks = {reinterpret_cast<Block*>(memory), rows, blocks_count};
    weights = {reinterpret_cast<Weight*>(of_weights), rows, heads};
    queries = {of_weights + rows * heads * sizeof(Weight), rows * heads,
               kernels::entry_bytes(model::index_entry_format, config.index_head_dim)};
  }
};

/// Planes of choices.
template <class Index, class Score, class Byte>
struct choice_planes {
  matrix_view<Index> positions;  ///< [rows, top-k]
  matrix_view<Index> blocks;  ///< [rows, blocks]; index_choice: no columns
  matrix_view<Score> position_scores;
  matrix_view<Score> block_scores;

  choice_planes(Byte* memory, row_kind kind, std::size_t rows, const model::model_config& config) {
    const std::size_t k = config.index_topk;
    const std::size_t blocks_count = kind == row_kind::pool_choice ? config.candidate_blocks : 0;
    Byte* of_blocks = memory + rows * k * sizeof(Index);
    Byte* of_scores = of_blocks + rows * blocks_count * sizeof(Index);
    positions = {reinterpret_cast<Index*>(memory), rows, k};
    blocks = {reinterpret_cast<Index*>(of_blocks), rows, blocks_count};
    position_scores = {reinterpret_cast<Score*>(of_scores), rows, k};
    block_scores = {reinterpret_cast<Score*>(of_scores + rows * k * sizeof(Score)), rows,
                    blocks_count};
  }
};

bool has_layout(const flow::row_block& block, std::size_t rows, const model::model_config& config) {
  const std::size_t bytes = row_bytes(block.kind, config);
  return block.rows_count == rows && block.row_bytes == bytes &&
         flow::bytes_of(block.payload).size() >= rows * bytes;
}

void put_scored(std::span<const scored_index> found, std::span<std::int32_t> indices,
                std::span<bf16> scores) {
  std::ranges::fill(indices, no_index);
  std::ranges::fill(scores, bf16{});
  for (std::size_t i = 0; i < found.size(); ++i) {
    indices[i] = static_cast<std::int32_t>(found[i].index);
    scores[i] = found[i].score;
  }
}

/// Up to the padding; false: negative, not ascending, or a score that is no number.
bool read_scored(std::span<const std::int32_t> indices, std::span<const bf16> scores,
                 std::vector<scored_index>& out) {
  std::int32_t last = no_index;
  for (std::size_t i = 0; i < indices.size() && indices[i] != no_index; ++i) {
    if (indices[i] <= last || std::isnan(kernels::to_float(scores[i]))) return false;
    last = indices[i];
    out.push_back({static_cast<std::uint32_t>(last), scores[i]});
  }
  return true;
}

/// The `k` best of `found`, whose indices differ, ascending.
void best_of(std::vector<scored_index>& found, std::size_t k, std::vector<std::uint32_t>& out) {
  std::ranges::sort(found, {}, &scored_index::index);
  std::vector<bf16> scores;
  for (const scored_index& one : found) scores.push_back(one.score);
  kernels::select_top_k(scores, k, out);
  for (std::uint32_t& place : out) place = found[place].index;
}

std::uint32_t blocks_in(std::uint32_t entries, std::uint32_t size) {
  return (entries + size - 1) / size;
}

}  // namespace

std::vector<asking_row> asking_rows(std::span<const flow::row_span> spans,
                                    const model::schedule& schedule, std::uint32_t layer,
                                    const model::index_shard& shard) {
  std::vector<asking_row> out;
  std::size_t row = 0;
  for (const flow::row_span& span : spans)
    for (std::uint32_t i = layer < schedule.decoder_begin() ? 0 : span.decoder_from();
         i < span.rows_count; ++i, ++row) {
      const std::uint32_t visible = (span.first_position + i + 1) / schedule[layer].ratio;
      if (shard.count(visible) > 0) out.push_back({row, span.request, visible});
    }
  return out;
}

std::uint32_t new_keys_of(std::span<const flow::row_span> spans, const model::schedule& schedule,
                          const model::index_shard& shard) {
  const std::uint32_t ratio = schedule[shard.owner].ratio;
  std::uint32_t count = 0;
  for (const flow::row_span& span : spans) {
    const std::uint32_t first = span.first_entry(ratio);
    count += shard.count(first + span.entries_count(ratio)) - shard.count(first);
  }
  return count;
}

std::optional<flow::row_block> make_keys_block(const shared_context& c,
                                               const flow::step_table& table,
                                               const model::index_shard& shard,
                                               std::span<const std::byte> keys) {
  const std::size_t count = new_keys_of(table.spans, c.schedule, shard);
  if (count == 0) return std::nullopt;
  const std::size_t bytes = row_bytes(row_kind::index_keys, c.config);
  const std::uint32_t ratio = c.schedule[shard.owner].ratio;
  kernels::buffer memory(count * bytes);
  std::byte* to = memory.data();
  const std::byte* from = keys.data();
  for (const flow::row_span& span : table.spans) {
    const std::uint32_t first = span.first_entry(ratio);
    for (std::uint32_t entry = first; entry < first + span.entries_count(ratio);
         ++entry, from += bytes)
      if (shard.holds(entry)) to = std::copy_n(from, bytes, to);
  }
  flow::row_block block = make_block(row_kind::index_keys, table, c.config, std::move(memory));
  block.layer = shard.owner;
  block.slice = shard.number;
  return block;
}

result<matrix_view<const std::byte>> keys_of_shard(const flow::row_block& block,
                                                   const shared_context& c,
                                                   const model::index_shard& shard) {
  const std::size_t count = new_keys_of(block.spans, c.schedule, shard);
  if (block.kind != row_kind::index_keys || block.layer != shard.owner ||
      block.slice != shard.number || !has_layout(block, count, c.config))
    return fail(errc::malformed,
                text_of_index(block) + ": not the entries of its spans that are here");
  return matrix_view<const std::byte>{flow::bytes_of(block.payload).data(), count, block.row_bytes};
}

result<index_questions> questions_of(const flow::row_block& block, const shared_context& c,
                                     const model::index_shard& shard) {
  const bool asks = block.kind == row_kind::index_query || block.kind == row_kind::pool_query;
  if (!asks || block.slice != shard.number || block.layer >= c.schedule.layers() ||
      c.schedule[block.layer].owner != shard.owner ||
      c.schedule[block.layer].index_source != block.layer ||
      c.schedule[block.layer].uses_candidates != (block.kind == row_kind::pool_query))
    return fail(errc::malformed, text_of_index(block) + ": this shard does not answer it");
  index_questions out;
  out.rows = asking_rows(block.spans, c.schedule, block.layer, shard);
  if (!has_layout(block, out.rows.size(), c.config))
    return fail(errc::malformed,
                text_of_index(block) + ": not the rows of its spans that see entries here");
  const query_planes<const std::int32_t, const bf16, const std::byte> planes(
      flow::bytes_of(block.payload).data(), block.kind, out.rows.size(), c.config);
  out.queries = planes.queries;
  out.weights = planes.weights;
  const std::uint32_t size = c.config.candidate_block_size;
  for (std::size_t row = 0; row < out.rows.size(); ++row) {
    bool sound = std::ranges::all_of(planes.weights.row(row), [](bf16 weight) {
      return std::isfinite(kernels::to_float(weight));
    });
    if (block.kind == row_kind::pool_query) {
      auto& blocks = out.blocks.emplace_back();
      for (const std::int32_t one : planes.blocks.row(row)) {
        if (one == no_index) break;
        const auto index = static_cast<std::uint32_t>(one);
        sound = sound && one >= 0 && (blocks.empty() || index > blocks.back()) &&
                index < blocks_in(out.rows[row].visible, size) && shard.holds_block(index);
        blocks.push_back(index);
      }
    }
    if (!sound)
      return fail(errc::malformed, text_of_index(block) + ": row " + std::to_string(row) +
                                       " has weights or blocks that cannot be");
  }
  return out;
}

flow::row_block make_choice_block(const shared_context& c, const flow::row_block& request,
                                  std::span<const index_findings> found) {
  const row_kind kind =
      c.schedule[request.layer].makes_candidates ? row_kind::pool_choice : row_kind::index_choice;
  kernels::buffer memory(found.size() * row_bytes(kind, c.config));
  const choice_planes<std::int32_t, bf16, std::byte> planes(memory.data(), kind, found.size(),
                                                            c.config);
  for (std::size_t row = 0; row < found.size(); ++row) {
    put_scored(found[row].entries, planes.positions.row(row), planes.position_scores.row(row));
    put_scored(found[row].blocks, planes.blocks.row(row), planes.block_scores.row(row));
  }
  return answer_block(kind, request, c.config, std::move(memory));
}

flow::row_block awaited_choices::new_request(const flow::step_table& table,
                                             const model::index_shard& shard,
                                             const model::index_query& query,
                                             std::span<const kernels::candidate_pool> pools,
                                             const std::vector<asking_row>& rows) const {
  const row_kind kind = pools.empty() ? row_kind::index_query : row_kind::pool_query;
  const std::size_t heads = c_.config.index_heads;
  kernels::buffer memory(rows.size() * row_bytes(kind, c_.config));
  const query_planes<std::int32_t, bf16, std::byte> planes(memory.data(), kind, rows.size(),
                                                           c_.config);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t row = rows[i].row;
    std::ranges::copy(query.weights.row(row), planes.weights.row_data(i));
    for (std::size_t head = 0; head < heads; ++head)
      std::ranges::copy(query.packed.row(row * heads + head),
                        planes.queries.row_data(i * heads + head));
    if (pools.empty()) continue;
    std::ranges::fill(planes.blocks.row(i), no_index);
    std::int32_t* to = planes.blocks.row_data(i);
    for (const std::uint32_t block : pools[row].blocks)
      if (shard.holds_block(block)) *to++ = static_cast<std::int32_t>(block);
  }
  flow::row_block block = make_block(kind, table, c_.config, std::move(memory));
  block.layer = layer_;
  block.reader = reader_;
  block.slice = shard.number;
  return block;
}

void awaited_choices::ask(const flow::step_table& table, std::uint32_t layer,
                          const model::index_query& query,
                          std::span<const kernels::candidate_pool> pools,
                          std::vector<flow::row_block>& out) {
  layer_ = layer;
  pools_ = c_.schedule[layer].uses_candidates ? pools : std::span<const kernels::candidate_pool>{};
  visible_ = positions_of(table.spans, c_.schedule, layer);
  for (std::uint32_t& position : visible_) position = (position + 1) / c_.schedule[layer].ratio;
  found_.assign(visible_.size(), {});
  for (const model::index_shard& shard : shards_) {
    if (shard.owner != c_.schedule[layer].owner) continue;
    auto rows = asking_rows(table.spans, c_.schedule, layer, shard);
    if (rows.empty()) continue;
    flow::row_block request = new_request(table, shard, query, pools_, rows);
    asked_.push_back({&shard, request, std::move(rows)});
    asked_.back().request.payload = nullptr;
    out.push_back(std::move(request));
  }
}

bool awaited_choices::row_is_sound(const index_findings& found, const asking_row& row,
                                   const model::index_shard& shard) const {
  const std::uint32_t here = shard.count(row.visible);
  const std::uint32_t size = c_.config.candidate_block_size;
  std::uint32_t choices = here;  // that the shard had
  if (!pools_.empty()) {
    kernels::candidate_pool pool{size, {}};
    for (const std::uint32_t block : pools_[row.row].blocks)
      if (shard.holds_block(block)) pool.blocks.push_back(block);
    choices = static_cast<std::uint32_t>(kernels::pool_size(pool, row.visible));
  }
  const auto entry_is_sound = [&](const scored_index& one) {
    return one.index < row.visible && shard.holds(one.index) &&
           (pools_.empty() || std::ranges::binary_search(pools_[row.row].blocks, one.index / size));
  };
  const auto block_is_sound = [&](const scored_index& one) {
    return one.index < blocks_in(row.visible, size) && shard.holds_block(one.index);
  };
  return found.entries.size() == std::min(c_.config.index_topk, choices) &&
         std::ranges::all_of(found.entries, entry_is_sound) &&
         (!c_.schedule[layer_].makes_candidates ||
          (found.blocks.size() == std::min(c_.config.candidate_blocks, blocks_in(here, size)) &&
           std::ranges::all_of(found.blocks, block_is_sound)));
}

/// Nothing: the answer makes no sense.
std::optional<std::vector<index_findings>> awaited_choices::findings_in(
    const flow::row_block& answer, const question& asked) const {
  const choice_planes<const std::int32_t, const bf16, const std::byte> planes(
      flow::bytes_of(answer.payload).data(), answer.kind, asked.rows.size(), c_.config);
  std::vector<index_findings> out(asked.rows.size());
  for (std::size_t row = 0; row < out.size(); ++row)
    if (!read_scored(planes.positions.row(row), planes.position_scores.row(row),
                     out[row].entries) ||
        !read_scored(planes.blocks.row(row), planes.block_scores.row(row), out[row].blocks) ||
        !row_is_sound(out[row], asked.rows[row], *asked.shard))
      return std::nullopt;
  return out;
}

result<void> awaited_choices::take(const flow::row_block& answer) {
  const auto asked = std::ranges::find_if(
      asked_, [&](const question& one) { return one.request.slice == answer.slice; });
  const row_kind kind =
      c_.schedule[layer_].makes_candidates ? row_kind::pool_choice : row_kind::index_choice;
  const bool fits = asked != asked_.end() && answer.kind == kind &&
                    answer.step == asked->request.step && answer.layer == layer_ &&
                    answer.reader == reader_ && answer.spans == asked->request.spans &&
                    has_layout(answer, asked->rows.size(), c_.config);
  const auto found = fits ? findings_in(answer, *asked) : std::nullopt;
  if (!found)
    return fail(errc::malformed, text_of_index(answer) + " from shard " +
                                     std::to_string(answer.slice) + " is not what was asked for");
  for (std::size_t i = 0; i < found->size(); ++i) {
    index_findings& row = found_[asked->rows[i].row];
    row.entries.insert(row.entries.end(), (*found)[i].entries.begin(), (*found)[i].entries.end());
    row.blocks.insert(row.blocks.end(), (*found)[i].blocks.begin(), (*found)[i].blocks.end());
  }
  asked_.erase(asked);
  return {};
}

void awaited_choices::settle(step_selections& selections) {
  const std::uint32_t size = c_.config.candidate_block_size;
  const bool makes_candidates = c_.schedule[layer_].makes_candidates;
  selection& chosen = selections.by_source[layer_];
  chosen.resize(found_.size());
  if (makes_candidates) selections.candidates.resize(found_.size());
  for (std::size_t row = 0; row < found_.size(); ++row) {
    best_of(found_[row].entries, c_.config.index_topk, chosen[row]);
    if (!makes_candidates) continue;
    kernels::candidate_pool& pool = selections.candidates[row];
    pool = {size, {}};
    if (visible_[row] == 0) continue;
    // The newest block is always in the pool, whatever its score.
    const std::uint32_t newest = (visible_[row] - 1) / size;
    std::erase_if(found_[row].blocks, [&](const scored_index& one) { return one.index == newest; });
    best_of(found_[row].blocks, c_.config.candidate_blocks - 1, pool.blocks);
    pool.blocks.push_back(newest);
  }
  found_.clear();
}

}  // namespace cedar::stage
