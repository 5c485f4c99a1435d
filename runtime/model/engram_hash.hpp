// Where the rows of an Engram module lie: addresses from token ids alone.
//
// Column (n − 2) · heads + h of a module's table holds the rows of n-grams of order n under hash
// head h. Everything here is integer arithmetic and bitwise the same everywhere; no text, no
// weights. Source: DeepSeek-V4.1-Flash technical report, section 2.4.2, and its released reference
// code.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/model/config.hpp"

namespace cedar::model {

/// The constants of one module; columns = (max_ngram − 1) · heads.
struct engram_module_tables {
  std::uint32_t layer = 0;  ///< the module sits before this layer
  std::uint32_t heads = 0;  ///< hash heads of each order
  std::vector<std::uint64_t> primes;  ///< [columns] rows of each column
  std::vector<std::uint64_t> offsets;  ///< [columns] first row of each column
  std::vector<std::uint64_t> multipliers;  ///< [max_ngram] odd; times a compressed id: below 2^63
  std::uint64_t rows = 0;  ///< sum of the primes
};

struct engram_hash_tables {
  std::uint32_t max_ngram = 0;
  token_id pad_token = 0;  ///< raw id
  std::vector<engram_module_tables> modules;  ///< in the order of engram_config::layers
};

/// The tables of a configuration; without modules if it has none. Primes are the smallest ones from
/// bucket_start on that were not used before, taken module by module, order by order, head by head.
/// Errors: mismatch if the configured rows of a module are not the sum of its primes;
/// invalid_argument for a compressed vocabulary or a bucket start outside what the rule covers.
result<engram_hash_tables> make_engram_tables(const model_config& config);

/// Rows of each of `modules` tables with `columns` columns, as the rule of make_engram_tables()
/// gives them: what engram_num_embeddings has to be.
std::vector<std::uint64_t> engram_row_counts(std::size_t modules, std::uint32_t columns,
                                             std::uint64_t bucket_start);

/// The multipliers of the module before `layer`: NumPy's default_rng(10007 · layer) draws `count`
/// integers v below floor(floor((2^63 − 1) / compressed_vocabulary) / 2); each gives 2v + 1.
/// `compressed_vocabulary` lies in [1, engram_vocabulary_max].
std::vector<std::uint64_t> engram_multipliers(std::uint32_t layer, std::uint32_t count,
                                              std::uint32_t compressed_vocabulary);

/// Above this NumPy would draw 32-bit integers by another rule.
inline constexpr std::uint32_t engram_vocabulary_max = (1U << 30) - 1;

/// Consecutive tokens of one sequence, as raw ids.
struct engram_tokens {
  /// The ids before the first row, oldest first, at most max_ngram − 1. Fewer mean that the
  /// sequence starts with the oldest of them (or with the first row).
  std::span<const token_id> lookback;
  std::span<const token_id> rows;
  /// One flag for each id of `lookback` and of `rows`: not 0 inside an image span. Empty: no
  /// images.
  std::span<const std::uint8_t> lookback_image = {};
  std::span<const std::uint8_t> rows_image = {};
};

/// For every row the compressed ids of its token and of those before it.
/// `windows`: [rows, max_ngram] int32, newest first. Going back, the first position that lies
/// before the start of the sequence or inside an image span blocks: it and all before it are the
/// compressed pad id (a row inside an image span has nothing else). `token_map`: compressed id of
/// every id of the model's vocabulary (text::engram_token_map). Any thread; allocates nothing.
/// Sizes and ids that do not fit are defects.
void engram_windows(const engram_hash_tables& tables, std::span<const std::int32_t> token_map,
                    const engram_tokens& tokens, std::span<std::int32_t> windows);

/// Table rows of one row of tokens. `window`: [max_ngram] from engram_windows; `rows`: [columns].
/// H = c0·m0, then for each further order H ← H xor c·m; column of that order and head h: H mod
/// prime, plus the column's offset. Any thread; allocates nothing.
void engram_addresses(const engram_module_tables& module, std::span<const std::int32_t> window,
                      std::span<std::uint64_t> rows);

}  // namespace cedar::model
