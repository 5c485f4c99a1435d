#include "runtime/session/cost_table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cedar::session {

std::uint32_t cost_table::cell_of(std::uint32_t size) noexcept {
  constexpr int digits = 4;  // sizes of the same leading binary digits
  const int dropped = std::max(static_cast<int>(std::bit_width(size)) - digits, 0);
  return size >> dropped << dropped;
}

void cost_table::observe(std::uint32_t size, double seconds) {
  if (size == 0 || !std::isfinite(seconds) || seconds <= 0) return;
  cell& seen = cells_[cell_of(size)];
  seen.push_back({++now_, size, seconds});
  if (seen.size() > kept) seen.pop_front();
  fit();
}

cost_table::point cost_table::point_of(const cell& seen) {
  std::vector<double> times;
  double sizes = 0;
  for (const observation& one : seen) {
    times.push_back(one.seconds);
    sizes += one.size;
  }
  const auto quartile = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 4);
  std::ranges::nth_element(times, quartile);
  return {sizes / static_cast<double>(seen.size()), *quartile};
}

void cost_table::fit() {
  fit_.clear();
  for (auto it = cells_.begin(); it != cells_.end();) {
    cell& seen = it->second;
    while (!seen.empty() && seen.front().when + horizon < now_) seen.pop_front();
    if (seen.empty()) {
      it = cells_.erase(it);
      continue;
    }
    fit_.push_back(point_of(seen));
    ++it;
  }
  for (std::size_t i = fit_.size() - 1; i > 0; --i)
    fit_[i - 1].seconds = std::min(fit_[i - 1].seconds, fit_[i].seconds);
}

std::optional<double> cost_table::seconds(std::uint32_t size) const {
  if (fit_.empty()) return std::nullopt;
  const auto wanted = static_cast<double>(size);
  const point& first = fit_.front();
  const point& last = fit_.back();
  const double slope =
      fit_.size() == 1 ? 0 : (last.seconds - first.seconds) / (last.size - first.size);
  if (wanted <= first.size)
    return std::max(first.seconds - slope * (first.size - wanted),
                    first.seconds * wanted / first.size);
  if (wanted >= last.size) return last.seconds + slope * (wanted - last.size);
  const auto right =
      std::ranges::upper_bound(fit_, wanted, {}, [](const point& one) { return one.size; });
  const auto left = right - 1;
  return left->seconds +
         (right->seconds - left->seconds) * (wanted - left->size) / (right->size - left->size);
}

}  // namespace cedar::session
