#include "runtime/session/prefix_index.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace cedar::session {

namespace {

/// Half of what a step table can drop: as many again may have come and gone since the last one.
constexpr std::size_t entries_max = flow::prefixes_dropped_max / 2;

std::uint32_t common(std::span<const token_id> a, std::span<const token_id> b) {
  return static_cast<std::uint32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

bool held(const prefix_ref& entry) noexcept {
  return entry.use_count() > 1;
}

/// Granules of the entries that are `wanted`, each once.
template <class Wanted>
std::uint64_t distinct(std::span<const prefix_ref> entries, Wanted wanted) {
  std::unordered_set<const void*> seen;
  for (const prefix_ref& entry : entries)
    if (wanted(entry)) entry->kv.each([&](const void* granule) { seen.insert(granule); });
  return seen.size();
}

}  // namespace

prefix_match prefix_index::longest(std::span<const token_id> tokens, bool exact) {
  prefix_match best;
  for (const prefix_ref& entry : entries_) {
    std::uint32_t positions = common(tokens, entry->tokens);
    if (exact) positions = std::min(positions, entry->exact);
    positions -= positions % step_;
    if (positions > best.positions) best = {entry, positions};
  }
  if (best.prefix) best.prefix->last_use = ++clock_;
  return best;
}

prefix_id prefix_index::keep(std::vector<token_id> tokens, std::uint32_t exact,
                             const kv_holding& kv) {
  const auto within = [](const std::vector<token_id>& a, std::uint32_t a_exact,
                         const std::vector<token_id>& b, std::uint32_t b_exact) {
    return a.size() <= b.size() && a_exact <= b_exact && common(a, b) == a.size();
  };
  for (const prefix_ref& entry : entries_)
    if (within(tokens, exact, entry->tokens, entry->exact)) {
      entry->last_use = ++clock_;
      return {};
    }
  if (kv.granules() > granules_max_ ||
      entries_.size() + dropped_.size() >= flow::prefixes_dropped_max)
    return {};
  for (auto entry = entries_.begin(); entry != entries_.end();)
    if (!held(*entry) && within((*entry)->tokens, (*entry)->exact, tokens, exact)) {
      dropped_.push_back((*entry)->id);
      entry = entries_.erase(entry);
    } else {
      ++entry;
    }
  const prefix_id id{next_id_++};
  entries_.push_back(std::make_shared<prefix_entry>(
      prefix_entry{id, std::move(tokens), exact, kv.first(kv.granules()), ++clock_}));
  const prefix_ref made = entries_.back();  // held: not what makes room for itself
  while (entries_.size() > entries_max || granules() > granules_max_)
    if (!drop_one()) {
      std::erase(entries_, made);
      return {};
    }
  return id;
}

bool prefix_index::drop_one() {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
    if (!held(*entry) && (oldest == entries_.end() || (*entry)->last_use < (*oldest)->last_use))
      oldest = entry;
  if (oldest == entries_.end()) return false;
  dropped_.push_back((*oldest)->id);
  entries_.erase(oldest);
  ++evictions_;
  return true;
}

std::vector<prefix_id> prefix_index::take_dropped() {
  return std::exchange(dropped_, {});
}

void prefix_index::clear() {
  entries_.clear();
  dropped_.clear();
}

std::uint64_t prefix_index::granules() const {
  return distinct(entries_, [](const prefix_ref&) { return true; });
}

std::uint64_t prefix_index::granules_held(const prefix_match& match, bool with_match) const {
  return distinct(entries_, [&](const prefix_ref& entry) {
    return entry == match.prefix ? with_match || entry.use_count() > 2 : held(entry);
  });
}

}  // namespace cedar::session
