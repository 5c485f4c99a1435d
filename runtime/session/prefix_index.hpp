// Which tokens have kept global KV: the scheduler's side of the prefix store. The pages are at the
// stages, under the same names; what is done here is told them by verdicts (kept) and step tables
// (used, dropped).
//
// 1. A prefix is found by its tokens, compared one by one: no hash that could collide.
// 2. Who holds a prefix (a shared_ptr) keeps it from being dropped.
// 3. Prefixes are dropped, those that nobody holds and were not used for the longest time first,
//    when their granules exceed the bound or are wanted elsewhere.
// Not thread-safe: one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/session/kv_budget.hpp"

namespace cedar::session {

struct prefix_entry {
  prefix_id id;
  std::vector<token_id> tokens;
  /// Positions whose entries are those of a run from position 0. Later ones were made after a
  /// replay of truncated windows (mode bounded), and are approximate.
  std::uint32_t exact = 0;
  kv_holding kv;
  std::uint64_t last_use = 0;
};
/// SHARED: with the requests that begin with it; kept while there are any.
using prefix_ref = std::shared_ptr<prefix_entry>;

/// What a request can begin with.
struct prefix_match {
  prefix_ref prefix;  ///< null: nothing is known
  std::uint32_t positions = 0;  ///< a multiple of the index's step
};

class prefix_index {
 public:
  /// Matches are multiples of `step` positions; all prefixes together hold at most `granules_max`.
  prefix_index(std::uint32_t step, std::uint64_t granules_max)
      : step_(step), granules_max_(granules_max) {}

  /// The longest known beginning of `tokens`, of exact entries only if `exact`.
  prefix_match longest(std::span<const token_id> tokens, bool exact);
  /// Keeps an entry, unless a known one says as much, or there is no room for it. What it makes
  /// superfluous is dropped. The id, or none.
  prefix_id keep(std::vector<token_id> tokens, std::uint32_t exact, const kv_holding& kv);
  /// Drops the prefix that was not used for the longest time. False: all are held.
  bool drop_one();
  /// What was dropped since the last call, for the next step table.
  std::vector<prefix_id> take_dropped();
  /// Forgets everything: the stages have, too.
  void clear();

  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  /// Granules of all prefixes; those of several count once.
  std::uint64_t granules() const;
  /// The same of the prefixes that others than `match` hold, and of its own if `with_match`.
  std::uint64_t granules_held(const prefix_match& match, bool with_match) const;
  std::uint64_t evictions() const noexcept { return evictions_; }

 private:
  std::uint32_t step_;
  std::uint64_t granules_max_;
  std::vector<prefix_ref> entries_;
  std::vector<prefix_id> dropped_;
  std::uint64_t next_id_ = 1;
  std::uint64_t clock_ = 0;
  std::uint64_t evictions_ = 0;
};

}  // namespace cedar::session
