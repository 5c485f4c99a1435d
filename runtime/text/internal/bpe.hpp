// Byte-pair encoding of one word: the pair with the lowest rank is merged, leftmost first, until no
// pair has a rank. O(n log n) in the length of the word.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/ids.hpp"

namespace cedar::text {

/// "left right" becomes `result`; its rank is its place in the list of merges.
struct bpe_merge {
  token_id left = 0;
  token_id right = 0;
  token_id result = 0;
};

/// Merges by pair: open addressing with linear probing, at most half full.
class bpe_merge_table {
 public:
  struct entry {
    std::uint64_t pair = unused;
    std::uint32_t rank = 0;
    token_id result = 0;
  };

  explicit bpe_merge_table(std::size_t merges_max);

  /// False if the pair is there already.
  bool insert(const bpe_merge& merge, std::uint32_t rank);
  /// Nullptr if the pair does not merge.
  const entry* find(token_id left, token_id right) const noexcept;

 private:
  static constexpr std::uint64_t unused = ~std::uint64_t{0};  // ids are not negative

  std::size_t slot(std::uint64_t pair) const noexcept;

  unsigned shift_;
  std::vector<entry> entries_;
};

/// Immutable; encode() may run in several threads, each with its own workspace.
class bpe {
 public:
  /// Memory that encode() reuses from word to word.
  struct workspace {
    struct symbol {
      token_id token;
      std::int32_t previous;  ///< −1: none
      std::int32_t next;  ///< −1: none
    };
    /// A merge that was possible when it was queued; stale if either symbol changed since.
    struct candidate {
      std::uint32_t rank;
      std::int32_t position;  ///< of the left symbol
      token_id left;
      token_id right;
      token_id result;
    };
    std::vector<symbol> symbols;
    std::vector<candidate> heap;
  };

  /// `byte_tokens`: the token of each single byte.
  bpe(const std::array<token_id, 256>& byte_tokens, bpe_merge_table merges)
      : byte_tokens_(byte_tokens), merges_(std::move(merges)) {}

  /// Appends the tokens of `word` (shorter than 2^31 bytes) to `out`.
  void encode(std::string_view word, workspace& space, std::vector<token_id>& out) const;

 private:
  void queue_merge(std::int32_t position, workspace& space) const;
  void apply_merges(workspace& space) const;

  std::array<token_id, 256> byte_tokens_;
  bpe_merge_table merges_;
};

}  // namespace cedar::text
