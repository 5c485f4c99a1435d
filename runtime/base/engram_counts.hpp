// How a placed part has to do with Engram's tables: as one that holds them, or waits for their
// rows.
#pragma once

#include <cstdint>

namespace cedar {

struct engram_counts {
  std::uint64_t rows_sent = 0;  ///< table rows that it looked up for stages
  std::uint64_t steps = 0;  ///< that it computed with rows of tables
  std::uint64_t late = 0;  ///< of them, those whose rows came after all else that they need
  std::uint64_t waited_us = 0;  ///< from all else until those rows, all such steps together

  engram_counts& operator+=(const engram_counts& more) noexcept {
    rows_sent += more.rows_sent;
    steps += more.steps;
    late += more.late;
    waited_us += more.waited_us;
    return *this;
  }
  /// What came after `before`, of the same counts.
  engram_counts operator-(const engram_counts& before) const noexcept {
    return {rows_sent - before.rows_sent, steps - before.steps, late - before.late,
            waited_us - before.waited_us};
  }
  friend bool operator==(const engram_counts&, const engram_counts&) = default;
};

}  // namespace cedar
