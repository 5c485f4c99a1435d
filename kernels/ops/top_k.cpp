// Top-k of positions and of blocks: one pass with a threshold that rises. What is above it goes to
// a buffer of a few k items; a full buffer is cut back to the best k, and the worst of those is the
// new threshold. Whoever comes later needs a higher score: ties go to the lower position.
#include <algorithm>
#include <array>
#include <string>

#include "kernels/base/check.hpp"
#include "kernels/ops/selection.hpp"

namespace cedar::kernels {

namespace {

/// Scores that are mapped and compared with the threshold together.
constexpr std::size_t chunk = 64;
/// A buffer holds this many k before it is cut, and at least so many items.
constexpr std::size_t buffer_factor = 4;
constexpr std::size_t least_buffer = 4 * chunk;

/// Below every score, and above: infinity has 0x7f80.
constexpr std::int16_t lowest_key = -0x8000;
constexpr std::int16_t pinned_key = 0x7fff;

/// Integers in the order of the values, -0 and +0 alike: sign and magnitude to two's complement.
std::int16_t key_of(bf16 score) {
  const auto bits = static_cast<std::int16_t>(score.bits);
  const auto sign = static_cast<std::int16_t>(bits >> 15);
  return static_cast<std::int16_t>(((bits & 0x7fff) ^ sign) - sign);
}

bool is_nan(bf16 score) {
  return (score.bits & 0x7fffU) > 0x7f80U;
}

struct key_bounds {
  std::int16_t highest = lowest_key;
  std::int16_t magnitude = 0;  ///< the largest: NaN has more than infinity
};

/// Maps `count` scores. Plain arrays and a count that is known where it matters: vector
/// instructions.
inline key_bounds map_scores(const bf16* scores, std::size_t count, std::int16_t* __restrict keys) {
  std::int16_t highest = lowest_key;
  std::int16_t magnitude = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int16_t key = key_of(scores[i]);
    const auto size = static_cast<std::int16_t>(scores[i].bits & 0x7fff);
    keys[i] = key;
    highest = highest > key ? highest : key;
    magnitude = magnitude > size ? magnitude : size;
  }
  return {highest, magnitude};
}

/// Maps a chunk; returns the highest key. Throws on NaN: `position(i)` is that of score i.
template <class Position>
std::int16_t map_keys(std::span<const bf16> scores, const Position& position,
                      std::array<std::int16_t, chunk>& keys) {
  const key_bounds bounds = scores.size() == chunk
                                ? map_scores(scores.data(), chunk, keys.data())
                                : map_scores(scores.data(), scores.size(), keys.data());
  if (bounds.magnitude > 0x7f80) {
    const auto bad = std::ranges::find_if(scores, is_nan);
    const auto index = static_cast<std::size_t>(bad - scores.begin());
    CEDAR_REQUIRE(false, "score of position " + std::to_string(position(index)) + " is NaN");
  }
  return bounds.highest;
}

/// The k best of items that are offered in ascending order of their index.
class best_items {
 public:
  explicit best_items(std::size_t k)
      : k_(k), most_(std::max(buffer_factor * k, least_buffer)), items_(memory().items) {
    items_.clear();
    items_.reserve(most_);
  }

  /// Keys up to here need not be offered.
  std::int16_t threshold() const { return threshold_; }

  void offer(std::int16_t key, std::uint32_t index) {
    if (key <= threshold_) return;
    if (items_.size() == most_) cut();
    if (key > threshold_) items_.push_back({key, index});
  }

  /// Indices of the best, ascending.
  void finish(std::vector<std::uint32_t>& out) {
    if (items_.size() > k_) cut();
    out.clear();
    for (const item& chosen : items_) out.push_back(chosen.index);
  }

 private:
  struct item {
    std::int16_t key;
    std::uint32_t index;
  };
  struct buffers {
    std::vector<item> items;
    std::vector<std::int16_t> keys;
  };

  /// A thread's working memory: it allocates until it has seen its largest k.
  static buffers& memory() {
    thread_local buffers kept;
    return kept;
  }

  /// Keeps the best k in their order.
  void cut() {
    std::vector<std::int16_t>& keys = memory().keys;
    keys.clear();
    for (const item& kept : items_) keys.push_back(kept.key);
    const auto worst = keys.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
    std::nth_element(keys.begin(), worst, keys.end(), std::greater<>());
    threshold_ = *worst;
    auto ties = std::count(keys.begin(), worst + 1, threshold_);
    std::erase_if(items_, [&](const item& kept) {
      return kept.key < threshold_ || (kept.key == threshold_ && ties-- <= 0);
    });
  }

  std::size_t k_;
  std::size_t most_;
  std::int16_t threshold_ = lowest_key;
  std::vector<item>& items_;
};

/// select_top_k() of scores whose i-th belongs to position(i); `out` gets indices.
template <class Position>
void select_indices(std::span<const bf16> scores, std::size_t k, const Position& position,
                    std::vector<std::uint32_t>& out) {
  best_items best(std::max<std::size_t>(k, 1));
  for (std::size_t first = 0; first < scores.size(); first += chunk) {
    const auto part = scores.subspan(first, std::min(chunk, scores.size() - first));
    std::array<std::int16_t, chunk> keys;
    const std::int16_t highest = map_keys(
        part, [&](std::size_t i) { return position(first + i); }, keys);
    if (highest <= best.threshold()) continue;
    for (std::size_t i = 0; i < part.size(); ++i)
      best.offer(keys[i], static_cast<std::uint32_t>(first + i));
  }
  best.finish(out);
  if (k == 0) out.clear();
}

void require_pool(const candidate_pool& pool) {
  CEDAR_REQUIRE(pool.block_size >= 1 || pool.blocks.empty(), "candidate pool with blocks of 0");
  for (std::size_t i = 1; i < pool.blocks.size(); ++i)
    CEDAR_REQUIRE(pool.blocks[i - 1] < pool.blocks[i],
                  "candidate blocks " + std::to_string(pool.blocks[i - 1]) + " and " +
                      std::to_string(pool.blocks[i]) + " are not ascending");
}

}  // namespace

void select_top_k(std::span<const bf16> scores, std::size_t k, std::vector<std::uint32_t>& out) {
  select_indices(
      scores, k, [](std::size_t index) { return index; }, out);
}

std::size_t pool_size(const candidate_pool& pool, std::size_t positions) {
  require_pool(pool);
  std::size_t size = 0;
  for (const std::size_t block : pool.blocks) {
    const std::size_t first = block * pool.block_size;
    if (first < positions) size += std::min<std::size_t>(pool.block_size, positions - first);
  }
  return size;
}

void select_top_k_in_pool(std::span<const bf16> scores, const candidate_pool& pool,
                          std::size_t positions, std::size_t k, std::vector<std::uint32_t>& out) {
  const std::size_t expected = pool_size(pool, positions);
  CEDAR_REQUIRE(scores.size() == expected,
                "scores of a candidate pool: " + std::to_string(scores.size()) + " instead of " +
                    std::to_string(expected));
  // Blocks are whole but for the newest, which is the last.
  const auto position = [&](std::size_t index) {
    return pool.blocks[index / pool.block_size] * pool.block_size + index % pool.block_size;
  };
  select_indices(scores, k, position, out);
  for (std::uint32_t& index : out) index = static_cast<std::uint32_t>(position(index));
}

void select_candidates(std::span<const bf16> scores, std::uint32_t block_size,
                       std::size_t blocks_count, candidate_pool& out) {
  CEDAR_REQUIRE(block_size >= 1, "candidate blocks of 0 positions");
  best_items best(std::max<std::size_t>(blocks_count, 1));
  std::int16_t highest = lowest_key;  // of the block that is being read
  std::uint32_t block = 0;
  std::size_t left = block_size;  // scores of it that are to come
  for (std::size_t first = 0; first < scores.size(); first += chunk) {
    const auto part = scores.subspan(first, std::min(chunk, scores.size() - first));
    std::array<std::int16_t, chunk> keys;
    map_keys(
        part, [&](std::size_t i) { return first + i; }, keys);
    for (std::size_t i = 0; i < part.size();) {
      const std::size_t count = std::min(left, part.size() - i);
      for (const std::size_t end = i + count; i < end; ++i) highest = std::max(highest, keys[i]);
      left -= count;
      const bool newest = first + i == scores.size();
      if (left > 0 && !newest) continue;
      best.offer(newest ? pinned_key : highest, block++);
      highest = lowest_key;
      left = block_size;
    }
  }
  out.block_size = block_size;
  best.finish(out.blocks);
  if (blocks_count == 0) out.blocks.clear();
}

}  // namespace cedar::kernels
