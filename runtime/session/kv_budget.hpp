// How much KV all requests together may hold: the scheduler's account of the stages' page pools.
//
// KV is given out in granules: so many positions that every owner fills whole pages with them. A
// stage whose pool has the pages of `total` granules (stage::pages_needed) cannot run out while the
// requests in the pipeline hold no more.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/base/check.hpp"

namespace cedar::session {

class kv_budget {
 public:
  /// `granule`: positions of one, at least 1.
  kv_budget(std::uint32_t granule, std::uint64_t total)
      : granule_(granule), total_(total), free_(total) {
    CEDAR_REQUIRE(granule > 0, "a granule of KV has at least one position");
  }

  std::uint64_t total() const noexcept { return total_; }
  std::uint64_t free() const noexcept { return free_; }
  /// Granules that hold `positions`.
  std::uint64_t needed(std::uint64_t positions) const noexcept {
    return (positions + granule_ - 1) / granule_;
  }
  /// Positions that `granules` hold.
  std::uint64_t positions(std::uint64_t granules) const noexcept { return granules * granule_; }

  /// False, and nothing taken, if fewer are free.
  [[nodiscard]] bool take(std::uint64_t granules) noexcept {
    if (granules > free_) return false;
    free_ -= granules;
    return true;
  }
  void give(std::uint64_t granules) {
    CEDAR_ASSERT(granules <= total_ - free_, "more KV comes back than was given");
    free_ += granules;
  }
  void give_all() noexcept { free_ = total_; }

 private:
  std::uint32_t granule_;
  std::uint64_t total_;
  std::uint64_t free_;
};

}  // namespace cedar::session
