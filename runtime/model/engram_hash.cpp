#include "runtime/model/engram_hash.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <string>

#include "kernels/base/check.hpp"
#include "runtime/model/numpy_random.hpp"

namespace cedar::model {
namespace {

__extension__ using uint128 = unsigned __int128;

/// The search for primes stays far from the end of 64 bits.
constexpr std::uint64_t bucket_start_max = std::uint64_t{1} << 48;

std::uint64_t power_modulo(std::uint64_t base, std::uint64_t exponent, std::uint64_t modulus) {
  std::uint64_t power = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) power = static_cast<std::uint64_t>(uint128{power} * base % modulus);
    base = static_cast<std::uint64_t>(uint128{base} * base % modulus);
  }
  return power;
}

/// Miller-Rabin; the first twelve primes as bases decide every number below 2^64 (Sorenson and
/// Webster 2015).
bool is_prime(std::uint64_t number) {
  constexpr std::array<std::uint64_t, 12> bases = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  if (number < 2) return false;
  for (const std::uint64_t base : bases)
    if (number % base == 0) return number == base;
  const int twos = std::countr_zero(number - 1);
  for (const std::uint64_t base : bases) {
    std::uint64_t power = power_modulo(base, (number - 1) >> twos, number);
    bool witness = power != 1;
    for (int i = 0; witness && i < twos; ++i) {
      witness = power != number - 1;
      power = static_cast<std::uint64_t>(uint128{power} * power % number);
    }
    if (witness) return false;
  }
  return true;
}

std::uint64_t prime_from(std::uint64_t number) {
  while (!is_prime(number)) ++number;
  return number;
}

/// The primes of one module's columns, from `next` on; moves `next` past them.
std::vector<std::uint64_t> column_primes(std::uint32_t columns, std::uint64_t& next) {
  std::vector<std::uint64_t> primes(columns);
  for (std::uint64_t& prime : primes) {
    prime = prime_from(next);
    next = prime + 1;
  }
  return primes;
}

result<void> check_range(const engram_config& engram) {
  if (engram.max_ngram < 2 || engram.heads == 0)
    return fail(errc::invalid_argument,
                "engram_max_ngram_size must be 2 or more and "
                "engram_n_heads 1 or more");
  if (engram.compressed_vocabulary == 0 || engram.compressed_vocabulary > engram_vocabulary_max)
    return fail(errc::invalid_argument,
                "engram_compressed_vocab_size " + std::to_string(engram.compressed_vocabulary) +
                    " is outside 1.." + std::to_string(engram_vocabulary_max));
  if (engram.bucket_start > bucket_start_max)
    return fail(errc::invalid_argument,
                "engram_vocab_size " + std::to_string(engram.bucket_start) + " is too large");
  if (engram.rows.size() != engram.layers.size())
    return fail(errc::mismatch, "engram_num_embeddings and engram_layer_ids differ in length");
  return {};
}

/// Compressed id of the token `back` places before row `row`; −1 if that position blocks.
std::int32_t compressed_or_blocked(std::span<const std::int32_t> token_map,
                                   const engram_tokens& tokens, std::size_t row, std::size_t back) {
  const auto at = [&](std::span<const token_id> ids, std::span<const std::uint8_t> image,
                      std::size_t i) -> std::int32_t {
    if (!image.empty() && image[i] != 0) return -1;
    CEDAR_REQUIRE(ids[i] >= 0 && static_cast<std::size_t>(ids[i]) < token_map.size(),
                  "token " + std::to_string(ids[i]) + " has no compressed id");
    return token_map[static_cast<std::size_t>(ids[i])];
  };
  if (back <= row) return at(tokens.rows, tokens.rows_image, row - back);
  const std::size_t before = back - row;
  if (before > tokens.lookback.size()) return -1;
  return at(tokens.lookback, tokens.lookback_image, tokens.lookback.size() - before);
}

}  // namespace

std::vector<std::uint64_t> engram_multipliers(std::uint32_t layer, std::uint32_t count,
                                              std::uint32_t compressed_vocabulary) {
  CEDAR_REQUIRE(compressed_vocabulary > 0 && compressed_vocabulary <= engram_vocabulary_max,
                std::to_string(compressed_vocabulary) + " compressed ids");
  constexpr std::uint64_t product_max = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t bound = product_max / compressed_vocabulary / 2;
  numpy_generator random(std::uint64_t{10007} * layer);
  std::vector<std::uint64_t> multipliers(count);
  for (std::uint64_t& multiplier : multipliers) multiplier = 2 * random.below(bound) + 1;
  return multipliers;
}

std::vector<std::uint64_t> engram_row_counts(std::size_t modules, std::uint32_t columns,
                                             std::uint64_t bucket_start) {
  std::vector<std::uint64_t> rows(modules);
  std::uint64_t next = bucket_start;
  for (std::uint64_t& count : rows) {
    const std::vector<std::uint64_t> primes = column_primes(columns, next);
    count = std::accumulate(primes.begin(), primes.end(), std::uint64_t{0});
  }
  return rows;
}

result<engram_hash_tables> make_engram_tables(const model_config& config) {
  const engram_config& engram = config.engram;
  engram_hash_tables tables;
  if (engram.layers.empty()) return tables;
  if (result<void> checked = check_range(engram); !checked) return fail(checked.error());
  tables.max_ngram = engram.max_ngram;
  tables.pad_token = engram.pad_token;
  std::uint64_t next = engram.bucket_start;
  for (std::size_t i = 0; i < engram.layers.size(); ++i) {
    engram_module_tables module;
    module.layer = engram.layers[i];
    module.heads = engram.heads;
    module.primes = column_primes(config.engram_columns(), next);
    for (const std::uint64_t prime : module.primes) {
      module.offsets.push_back(module.rows);
      module.rows += prime;
    }
    if (module.rows != engram.rows[i])
      return fail(errc::mismatch, "the Engram module before layer " + std::to_string(module.layer) +
                                      " has " + std::to_string(module.rows) +
                                      " rows, engram_num_embeddings says " +
                                      std::to_string(engram.rows[i]));
    module.multipliers =
        engram_multipliers(module.layer, engram.max_ngram, engram.compressed_vocabulary);
    tables.modules.push_back(std::move(module));
  }
  return tables;
}

void engram_windows(const engram_hash_tables& tables, std::span<const std::int32_t> token_map,
                    const engram_tokens& tokens, std::span<std::int32_t> windows) {
  const std::size_t width = tables.max_ngram;
  CEDAR_REQUIRE(windows.size() == tokens.rows.size() * width, "windows: [rows, max_ngram]");
  CEDAR_REQUIRE(tokens.lookback.size() < std::max<std::size_t>(width, 1),
                "look-back of more than max_ngram - 1 ids");
  CEDAR_REQUIRE(
      (tokens.rows_image.empty() || tokens.rows_image.size() == tokens.rows.size()) &&
          (tokens.lookback_image.empty() || tokens.lookback_image.size() == tokens.lookback.size()),
      "one image flag for each id");
  CEDAR_REQUIRE(static_cast<std::size_t>(tables.pad_token) < token_map.size(),
                "the pad token has no compressed id");
  const std::int32_t pad = token_map[static_cast<std::size_t>(tables.pad_token)];
  for (std::size_t row = 0; row < tokens.rows.size(); ++row) {
    const std::span<std::int32_t> window = windows.subspan(row * width, width);
    std::size_t back = 0;
    for (; back < width; ++back) {
      const std::int32_t compressed = compressed_or_blocked(token_map, tokens, row, back);
      if (compressed < 0) break;
      window[back] = compressed;
    }
    std::fill(window.begin() + static_cast<std::ptrdiff_t>(back), window.end(), pad);
  }
}

void engram_addresses(const engram_module_tables& module, std::span<const std::int32_t> window,
                      std::span<std::uint64_t> rows) {
  CEDAR_REQUIRE(window.size() == module.multipliers.size(), "window: [max_ngram]");
  CEDAR_REQUIRE(rows.size() == module.primes.size(), "rows: [columns]");
  const auto term = [&](std::size_t i) {
    return static_cast<std::uint64_t>(window[i]) * module.multipliers[i];
  };
  std::uint64_t hash = term(0);
  std::size_t column = 0;
  for (std::size_t i = 1; i < window.size(); ++i) {
    hash ^= term(i);
    for (std::uint32_t head = 0; head < module.heads; ++head, ++column)
      rows[column] = hash % module.primes[column] + module.offsets[column];
  }
}

}  // namespace cedar::model
