// What the drafter remembers of one request: the taps of its last rows, and the context entries
// that every draft block has made of them.
//
// 1. Rows begin anywhere (in mode `bounded` at the first one that walks the decoder), continue
//    without gap, and a draft sees the last `window` of them.
// 2. Entries are made when a draft needs them; until then a row is its taps. Rings of both hold the
//    same rows, so that what has no entry yet can have one.
// 3. Rows that are taken back leave no trace: only a length moves, because rings have the slack of
//    every ring (ring_slack). More than that cannot be taken back, unless all rows are.
#pragma once

#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/memory/position_ring.hpp"
#include "runtime/model/config.hpp"

namespace cedar::stage {

/// Rows that a ring holds: a window, and what a verdict may take back.
std::uint32_t drafter_ring_rows(const model::model_config& config) noexcept;

class drafter_sequence {
 public:
  /// Empty; rows begin at position 0.
  explicit drafter_sequence(const model::model_config& config);
  /// Forgets all rows; those to come begin at position `first`.
  void begin(std::uint32_t first) noexcept;

  /// Rows [first, written) are known.
  std::uint32_t written() const noexcept { return written_; }
  bool empty() const noexcept { return written_ == first_; }
  /// The first position that a draft after the written rows sees; written() if it sees none.
  std::uint32_t visible_from() const noexcept { return needed_before(written_); }

  memory::position_ring& ring(std::size_t block) { return rings_.at(block); }
  const memory::position_ring& ring(std::size_t block) const { return rings_.at(block); }

  /// Taps of rows [row, targets * d] bf16 by position.
  memory::position_ring& taps() noexcept { return taps_; }
  const memory::position_ring& taps() const noexcept { return taps_; }
  /// Rows [entries_begin(), written()) have no entries yet, and may be seen.
  std::uint32_t entries_begin() const noexcept;
  /// Rows up to written() have entries in every ring.
  void entries_made() noexcept { computed_ = written_; }

  /// `step` has rows up to `positions`, whose last taps are written.
  void extend(step_id step, std::uint32_t positions) noexcept;
  /// The verdict on `step`: rows [.., positions) stand. Rows beyond are taken back, unless a later
  /// step has continued the request. Errors: mismatch (rows that a draft would see are gone; the
  /// step's rows have not come: taps and verdicts take different ways, their owner joins them).
  result<void> commit(step_id step, std::uint32_t positions);

 private:
  std::uint32_t needed_before(std::uint32_t positions) const noexcept;
  std::uint32_t kept_from() const noexcept;

  memory::position_ring taps_;
  std::vector<memory::position_ring> rings_;  ///< by block
  std::uint32_t window_;
  std::uint32_t first_ = 0;
  std::uint32_t written_ = 0;
  std::uint32_t highest_ = 0;  ///< up to which taps were ever written
  std::uint32_t computed_ = 0;  ///< rows before it have entries, as far as rings hold them
  step_id last_step_;
};

}  // namespace cedar::stage
