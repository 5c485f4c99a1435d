// What became of drafted tokens, for people who look.
#pragma once

#include <cstdint>
#include <vector>

namespace cedar::session {

/// Since the scheduler was made. Lists are by a token's place in its draft; the sums are the
/// totals.
struct draft_totals {
  std::uint64_t spans = 0;  ///< rows of a request in a step that verified a draft
  std::vector<std::uint64_t> proposed;  ///< tokens that were verified
  std::vector<std::uint64_t> accepted;  ///< of them, those that the model chose too

  /// A span verified `verified` tokens, of which the first `chosen` were accepted.
  void add(std::uint32_t verified, std::uint32_t chosen) {
    if (verified == 0) return;
    ++spans;
    if (proposed.size() < verified) {
      proposed.resize(verified);
      accepted.resize(verified);
    }
    for (std::uint32_t i = 0; i < verified; ++i) ++proposed[i];
    for (std::uint32_t i = 0; i < chosen; ++i) ++accepted[i];
  }
  /// Tokens that such a span makes on average: its own, and those it accepts. 0: there was none.
  double acceptance_length() const noexcept {
    if (spans == 0) return 0;
    std::uint64_t sum = 0;
    for (const std::uint64_t count : accepted) sum += count;
    return 1 + static_cast<double>(sum) / static_cast<double>(spans);
  }

  friend bool operator==(const draft_totals&, const draft_totals&) = default;
};

}  // namespace cedar::session
