#include "runtime/text/internal/bpe.hpp"

#include <algorithm>
#include <bit>

namespace cedar::text {
namespace {

std::uint64_t pack(token_id left, token_id right) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

/// Orders a heap so that the lowest rank, then the leftmost position, is at its front.
bool later(const bpe::workspace::candidate& a, const bpe::workspace::candidate& b) noexcept {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

}  // namespace

bpe_merge_table::bpe_merge_table(std::size_t merges_max) {
  const std::size_t slots = std::bit_ceil(std::max<std::size_t>(2, 2 * merges_max));
  shift_ = 64U - static_cast<unsigned>(std::countr_zero(slots));
  entries_.resize(slots);
}

std::size_t bpe_merge_table::slot(std::uint64_t pair) const noexcept {
  // Multiplication by 2^64 / golden ratio spreads consecutive ids over the upper bits.
  return static_cast<std::size_t>(pair * 0x9E3779B97F4A7C15U >> shift_);
}

bool bpe_merge_table::insert(const bpe_merge& merge, std::uint32_t rank) {
  const std::uint64_t pair = pack(merge.left, merge.right);
  std::size_t i = slot(pair);
  for (; entries_[i].pair != unused; i = (i + 1) & (entries_.size() - 1))
    if (entries_[i].pair == pair) return false;
  entries_[i] = {pair, rank, merge.result};
  return true;
}

const bpe_merge_table::entry* bpe_merge_table::find(token_id left, token_id right) const noexcept {
  const std::uint64_t pair = pack(left, right);
  for (std::size_t i = slot(pair); entries_[i].pair != unused; i = (i + 1) & (entries_.size() - 1))
    if (entries_[i].pair == pair) return &entries_[i];
  return nullptr;
}

void bpe::encode(std::string_view word, workspace& space, std::vector<token_id>& out) const {
  if (word.empty()) return;
  space.symbols.clear();
  space.heap.clear();
  const std::int32_t size = static_cast<std::int32_t>(word.size());
  for (std::int32_t i = 0; i < size; ++i) {
    const unsigned char byte = static_cast<unsigned char>(word[static_cast<std::size_t>(i)]);
    space.symbols.push_back({byte_tokens_[byte], i - 1, i + 1 < size ? i + 1 : -1});
  }
  for (std::int32_t i = 0; i < size; ++i) queue_merge(i, space);
  apply_merges(space);
  // The first symbol is never merged into one before it.
  for (std::int32_t i = 0; i >= 0; i = space.symbols[static_cast<std::size_t>(i)].next)
    out.push_back(space.symbols[static_cast<std::size_t>(i)].token);
}

void bpe::queue_merge(std::int32_t position, workspace& space) const {
  const workspace::symbol& left = space.symbols[static_cast<std::size_t>(position)];
  if (left.next < 0) return;
  const token_id right = space.symbols[static_cast<std::size_t>(left.next)].token;
  const bpe_merge_table::entry* merge = merges_.find(left.token, right);
  if (merge == nullptr) return;
  space.heap.push_back({merge->rank, position, left.token, right, merge->result});
  std::push_heap(space.heap.begin(), space.heap.end(), later);
}

void bpe::apply_merges(workspace& space) const {
  constexpr token_id merged_away = -1;
  while (!space.heap.empty()) {
    std::pop_heap(space.heap.begin(), space.heap.end(), later);
    const workspace::candidate best = space.heap.back();
    space.heap.pop_back();
    workspace::symbol& left = space.symbols[static_cast<std::size_t>(best.position)];
    if (left.token != best.left || left.next < 0) continue;
    workspace::symbol& right = space.symbols[static_cast<std::size_t>(left.next)];
    if (right.token != best.right) continue;
    left.token = best.result;
    left.next = right.next;
    right.token = merged_away;
    if (left.next >= 0) space.symbols[static_cast<std::size_t>(left.next)].previous = best.position;
    if (left.previous >= 0) queue_merge(left.previous, space);
    queue_merge(best.position, space);
  }
}

}  // namespace cedar::text
