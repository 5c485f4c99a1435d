// How long something takes by its size, learnt while it runs.
//
// 1. Sizes that are close together (all below 16 apart, then eight to a doubling) share a cell,
// which
//    keeps its latest observations. A cell's time is their lower quartile: what disturbs a
//    measurement makes it longer.
// 2. More never takes less: a cell's time is at most that of every larger one. Between cells the
//    time is interpolated. Beyond the largest and below the smallest it follows the slope between
//    those two; below it is never less than in proportion.
// 3. What has not been seen for `horizon` observations of the table is forgotten.
// Has no clock: time passes by observations.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace cedar::session {

class cost_table {
 public:
  static constexpr std::uint64_t horizon = 512;

  /// Something of `size`, at least 1, took `seconds`. What is no positive finite time is ignored.
  void observe(std::uint32_t size, double seconds);

  /// Nothing if nothing is known at all.
  std::optional<double> seconds(std::uint32_t size) const;

  /// Whether a size of the same cell has been seen, and is not forgotten.
  bool knows(std::uint32_t size) const { return cells_.contains(cell_of(size)); }

 private:
  struct observation {
    std::uint64_t when = 0;
    std::uint32_t size = 0;
    double seconds = 0;
  };
  using cell = std::deque<observation>;  ///< the oldest first, `kept` at most
  struct point {
    double size = 0;  ///< mean of the observations
    double seconds = 0;
  };
  static constexpr std::size_t kept = 5;

  /// The smallest size of its cell.
  static std::uint32_t cell_of(std::uint32_t size) noexcept;
  static point point_of(const cell& seen);
  void fit();

  std::map<std::uint32_t, cell> cells_;
  std::vector<point> fit_;  ///< by size
  std::uint64_t now_ = 0;
};

}  // namespace cedar::session
