// A part of an owner's index keys that is placed apart from the owner's stage.
#pragma once

#include <cstdint>

#include "runtime/model/config.hpp"

namespace cedar::model {

/// Of every `parts` blocks of consecutive entries, block `part`: so the shards of an owner hold as
/// much as each other, give or take a block, however long a request is, and each new block is
/// another shard's. A shard keeps its entries one after another; `place` is where one is.
struct index_shard {
  std::uint32_t number = 0;  ///< tells the shards of a placement apart
  std::uint32_t owner = 0;  ///< layer
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  std::uint32_t block_entries = 1;

  bool holds_block(std::uint32_t block) const noexcept { return block % parts == part; }
  bool holds(std::uint32_t entry) const noexcept { return holds_block(entry / block_entries); }
  /// How many of entries [0, entries) it holds; of an entry that it holds, the place.
  std::uint32_t count(std::uint32_t entries) const noexcept {
    const std::uint32_t blocks = entries / block_entries;
    const std::uint32_t rest = holds_block(blocks) ? entries % block_entries : 0;
    return (blocks / parts + (blocks % parts > part ? 1 : 0)) * block_entries + rest;
  }
  /// The block that is its `index`-th.
  std::uint32_t block(std::uint32_t index) const noexcept { return index * parts + part; }
  std::uint32_t entry(std::uint32_t place) const noexcept {
    return block(place / block_entries) * block_entries + place % block_entries;
  }
  friend bool operator==(const index_shard&, const index_shard&) = default;
};

/// Entries of a block: those of a candidate block, which then lies in one shard.
inline std::uint32_t shard_block_entries(const model_config& config) noexcept {
  constexpr std::uint32_t otherwise = 8;
  return config.candidate_source ? config.candidate_block_size : otherwise;
}

}  // namespace cedar::model
