#include "kernels/ops/selection.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "kernels/base/check.hpp"

namespace cedar::kernels {

namespace {

/// Above the key of every score, +infinity included.
constexpr std::uint32_t pinned_key = 0xffff;

/// Maps a score to 16 bits whose unsigned order is the order of the values, -0 and +0 alike.
/// Throws on NaN.
std::uint32_t key_of(bf16 score, std::size_t position) {
  const std::uint32_t magnitude = score.bits & 0x7fffU;
  CEDAR_REQUIRE(magnitude <= 0x7f80U, "score of position " + std::to_string(position) + " is NaN");
  const bool negative = (score.bits & 0x8000U) != 0 && magnitude != 0;
  return negative ? 0x8000U - magnitude : 0x8000U + magnitude;
}

/// Which items are chosen: all with a key above `threshold`, and the first `ties` equal to it.
struct cut {
  std::uint32_t threshold = 0;
  std::size_t ties = 0;
};

/// The bin in which the `wanted`-th highest item lies; `wanted` becomes its rank inside the bin.
std::uint32_t find_bin(const std::array<std::size_t, 256>& counts, std::size_t& wanted) {
  std::uint32_t bin = 255;
  while (counts[bin] < wanted) wanted -= counts[bin--];
  return bin;
}

/// Finds the cut that chooses exactly k items, by radix on the two bytes of the key: linear in the
/// number of items and without memory. `for_each(visit)` calls visit(key) for every item.
/// Requires 1 <= k <= number of items.
template <class ForEach>
cut find_cut(std::size_t k, const ForEach& for_each) {
  std::array<std::size_t, 256> counts{};
  for_each([&](std::uint32_t key, std::uint32_t) { ++counts[key >> 8]; });
  const std::uint32_t high = find_bin(counts, k);
  counts.fill(0);
  for_each([&](std::uint32_t key, std::uint32_t) {
    if (key >> 8 == high) ++counts[key & 0xffU];
  });
  const std::uint32_t low = find_bin(counts, k);
  return {high << 8 | low, k};
}

/// Appends the chosen items of `for_each`, in its order, to `out`.
template <class ForEach>
void choose(std::size_t k, std::size_t items, const ForEach& for_each,
            std::vector<std::uint32_t>& out) {
  out.clear();
  if (k == 0 || items == 0) return;
  cut chosen = find_cut(std::min(k, items), for_each);
  for_each([&](std::uint32_t key, std::uint32_t index) {
    if (key < chosen.threshold) return;
    if (key == chosen.threshold) {
      if (chosen.ties == 0) return;
      --chosen.ties;
    }
    out.push_back(index);
  });
}

std::size_t block_end(std::size_t block, std::size_t block_size, std::size_t positions) {
  return std::min((block + 1) * block_size, positions);
}

void require_size(const char* what, std::size_t actual, std::size_t expected) {
  CEDAR_REQUIRE(actual == expected, std::string(what) + ": " + std::to_string(actual) +
                                        " instead of " + std::to_string(expected));
}

void require_pool(const candidate_pool& pool) {
  CEDAR_REQUIRE(pool.block_size >= 1 || pool.blocks.empty(), "candidate pool with blocks of 0");
  for (std::size_t i = 1; i < pool.blocks.size(); ++i)
    CEDAR_REQUIRE(pool.blocks[i - 1] < pool.blocks[i],
                  "candidate blocks " + std::to_string(pool.blocks[i - 1]) + " and " +
                      std::to_string(pool.blocks[i]) + " are not ascending");
}

/// The best.size() highest of scores + bias, best first, lower expert first on ties.
void best_experts(std::span<const float> scores, std::span<const float> bias,
                  std::span<std::int32_t> best) {
  const auto biased = [&](std::size_t expert) { return scores[expert] + bias[expert]; };
  std::size_t found = 0;
  for (std::size_t expert = 0; expert < scores.size(); ++expert) {
    const float value = biased(expert);
    CEDAR_REQUIRE(!std::isnan(value),
                  "biased score of expert " + std::to_string(expert) + " is NaN");
    std::size_t place = found;
    while (place > 0 && biased(static_cast<std::size_t>(best[place - 1])) < value) --place;
    if (place == best.size()) continue;
    found = std::min(found + 1, best.size());
    for (std::size_t i = found - 1; i > place; --i) best[i] = best[i - 1];
    best[place] = static_cast<std::int32_t>(expert);
  }
}

/// Sum of the scores of `experts` (distinct), ascending by expert id whatever their order.
float ascending_sum(std::span<const float> scores, std::span<const std::int32_t> experts) {
  float sum = 0.0F;
  std::int32_t last = -1;
  for (std::size_t i = 0; i < experts.size(); ++i) {
    auto next = static_cast<std::int32_t>(scores.size());
    for (const std::int32_t expert : experts)
      if (expert > last && expert < next) next = expert;
    CEDAR_REQUIRE(
        static_cast<std::size_t>(next) < scores.size(),
        "an expert occurs twice among the " + std::to_string(experts.size()) + " of a row");
    sum += scores[static_cast<std::size_t>(next)];
    last = next;
  }
  return sum;
}

}  // namespace

void select_top_k(std::span<const bf16> scores, std::size_t k, std::vector<std::uint32_t>& out) {
  const auto for_each = [&](const auto& visit) {
    for (std::size_t j = 0; j < scores.size(); ++j)
      visit(key_of(scores[j], j), static_cast<std::uint32_t>(j));
  };
  choose(k, scores.size(), for_each, out);
}

void select_top_k_in_pool(std::span<const bf16> scores, const candidate_pool& pool, std::size_t k,
                          std::vector<std::uint32_t>& out) {
  require_pool(pool);
  std::size_t items = 0;
  for (const std::size_t block : pool.blocks)
    if (block * pool.block_size < scores.size())
      items += block_end(block, pool.block_size, scores.size()) - block * pool.block_size;
  const auto for_each = [&](const auto& visit) {
    for (const std::size_t block : pool.blocks) {
      const std::size_t end = block_end(block, pool.block_size, scores.size());
      for (std::size_t j = block * pool.block_size; j < end; ++j)
        visit(key_of(scores[j], j), static_cast<std::uint32_t>(j));
    }
  };
  choose(k, items, for_each, out);
}

void select_candidates(std::span<const bf16> scores, std::uint32_t block_size,
                       std::size_t blocks_count, candidate_pool& out) {
  CEDAR_REQUIRE(block_size >= 1, "candidate blocks of 0 positions");
  const std::size_t blocks = (scores.size() + block_size - 1) / block_size;
  const auto for_each = [&](const auto& visit) {
    for (std::size_t block = 0; block < blocks; ++block) {
      std::uint32_t key = 0;
      const std::size_t end = block_end(block, block_size, scores.size());
      for (std::size_t j = block * block_size; j < end; ++j)
        key = std::max(key, key_of(scores[j], j));
      if (block + 1 == blocks) key = pinned_key;
      visit(key, static_cast<std::uint32_t>(block));
    }
  };
  out.block_size = block_size;
  choose(blocks_count, blocks, for_each, out.blocks);
}

void select_experts(matrix_view<const float> scores, std::span<const float> bias,
                    std::span<const float> image_bias, std::span<const std::uint8_t> image_rows,
                    matrix_view<std::int32_t> experts) {
  require_size("rows of experts", experts.rows, scores.rows);
  require_size("bias", bias.size(), scores.cols);
  CEDAR_REQUIRE(experts.cols <= scores.cols,
                std::to_string(experts.cols) + " experts of " + std::to_string(scores.cols));
  if (!image_rows.empty()) require_size("image marks", image_rows.size(), scores.rows);
  for (std::size_t row = 0; row < scores.rows; ++row) {
    const bool image = !image_rows.empty() && image_rows[row] != 0;
    if (image) require_size("image bias", image_bias.size(), scores.cols);
    best_experts(scores.row(row), image ? image_bias : bias, experts.row(row));
  }
}

void route_weights(matrix_view<const float> scores, matrix_view<const std::int32_t> experts,
                   bool normalize, float scale, matrix_view<float> weights) {
  require_size("rows of experts", experts.rows, scores.rows);
  require_size("rows of weights", weights.rows, scores.rows);
  require_size("columns of weights", weights.cols, experts.cols);
  for (std::size_t row = 0; row < scores.rows; ++row) {
    const std::span<const float> score = scores.row(row);
    const std::span<const std::int32_t> chosen = experts.row(row);
    for (const std::int32_t expert : chosen)
      CEDAR_REQUIRE(expert >= 0 && static_cast<std::size_t>(expert) < score.size(),
                    "expert " + std::to_string(expert) + " of " + std::to_string(score.size()));
    const bool divide = normalize && chosen.size() > 1;
    const float divisor = divide ? ascending_sum(score, chosen) + 1e-20F : 1.0F;
    for (std::size_t i = 0; i < chosen.size(); ++i)
      weights.row(row)[i] = score[static_cast<std::size_t>(chosen[i])] / divisor * scale;
  }
}

std::int32_t arg_max(std::span<const float> values) {
  CEDAR_REQUIRE(!values.empty(), "arg max of no values");
  std::size_t best = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    CEDAR_REQUIRE(!std::isnan(values[i]), "value " + std::to_string(i) + " is NaN");
    if (values[i] > values[best]) best = i;
  }
  return static_cast<std::int32_t>(best);
}

}  // namespace cedar::kernels
