// A part of an Engram module's table that is placed as a unit.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/model/config.hpp"

namespace cedar::model {

/// Rows [first_row, end_row) of the table of the module before `layer`.
struct engram_shard {
  std::uint32_t number = 0;  ///< tells the shards of a placement apart
  std::uint32_t layer = 0;
  std::uint64_t first_row = 0;
  std::uint64_t end_row = 0;

  std::uint64_t rows_count() const noexcept { return end_row - first_row; }
  bool holds(std::uint64_t row) const noexcept { return row >= first_row && row < end_row; }
  /// The table has `rows` rows, and they are all here.
  bool is_whole(std::uint64_t rows) const noexcept { return first_row == 0 && end_row == rows; }
  friend bool operator==(const engram_shard&, const engram_shard&) = default;
};

/// The table of each module as one part.
inline std::vector<engram_shard> whole_tables(const engram_config& config) {
  std::vector<engram_shard> out;
  for (std::uint32_t i = 0; i < config.layers.size(); ++i)
    out.push_back({i, config.layers[i], 0, config.rows[i]});
  return out;
}

}  // namespace cedar::model
