// How much KV all requests and kept prefixes together may hold: the scheduler's account of the
// stages' page pools.
//
// KV is given out in granules: so many positions that every owner fills whole pages with them. A
// stage whose pool has the pages of `total` granules (stage::pages_needed) cannot run out while
// those in the pipeline hold no more. A granule that several hold counts once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/check.hpp"

namespace cedar::session {

/// The granules of one request or prefix, by position. They go back when nobody holds them.
class kv_holding {
 public:
  std::uint64_t granules() const noexcept { return leases_.size(); }
  /// Keeps the first `granules` at most.
  void shrink(std::uint64_t granules) {
    if (granules < leases_.size()) leases_.resize(granules);
  }
  /// The first `granules`, which must be held, held by the result too.
  kv_holding first(std::uint64_t granules) const {
    CEDAR_REQUIRE(granules <= leases_.size(), "only what is held can be shared");
    kv_holding out;
    out.leases_.assign(leases_.begin(), leases_.begin() + static_cast<std::ptrdiff_t>(granules));
    return out;
  }
  /// Identifies the granules, for who counts those of several holdings.
  template <class Visit>
  void each(Visit visit) const {
    for (const auto& one : leases_) visit(static_cast<const void*>(one.get()));
  }

 private:
  friend class kv_budget;
  struct lease {
    explicit lease(std::shared_ptr<std::uint64_t> budget) : free(std::move(budget)) { --*free; }
    ~lease() { ++*free; }
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    std::shared_ptr<std::uint64_t> free;  ///< SHARED: with the budget, which may be gone first
  };
  /// SHARED: a granule belongs to all that begin alike.
  std::vector<std::shared_ptr<const lease>> leases_;
};

class kv_budget {
 public:
  /// `granule`: positions of one, at least 1.
  kv_budget(std::uint32_t granule, std::uint64_t total)
      : granule_(granule), total_(total), free_(std::make_shared<std::uint64_t>(total)) {
    CEDAR_REQUIRE(granule > 0, "a granule of KV has at least one position");
  }

  std::uint64_t total() const noexcept { return total_; }
  std::uint64_t free() const noexcept { return *free_; }
  std::uint64_t used() const noexcept { return total_ - *free_; }
  /// Granules that hold `positions`.
  std::uint64_t needed(std::uint64_t positions) const noexcept {
    return (positions + granule_ - 1) / granule_;
  }
  /// Positions that `granules` hold.
  std::uint64_t positions(std::uint64_t granules) const noexcept { return granules * granule_; }

  /// Makes `to` hold at least `granules`. False, and nothing taken, if fewer are free.
  [[nodiscard]] bool extend(kv_holding& to, std::uint64_t granules) {
    if (granules <= to.granules()) return true;
    if (granules - to.granules() > *free_) return false;
    while (to.granules() < granules)
      to.leases_.push_back(std::make_shared<const kv_holding::lease>(free_));
    return true;
  }

 private:
  std::uint32_t granule_;
  std::uint64_t total_;
  std::shared_ptr<std::uint64_t> free_;  ///< SHARED: with what was given out
};

}  // namespace cedar::session
