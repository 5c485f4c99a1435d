// What a run of layers needs that earlier layers made in the same step: the price of a cut through
// a Full/Reuse group (schedule.hpp says who owns, selects and reads).
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "runtime/model/schedule.hpp"

namespace cedar::model {

/// State of Full/Reuse groups on its way between layers, as ascending lists of the layers that make
/// it.
struct shared_state {
  std::vector<std::uint32_t> entries;  ///< owners whose new main entries are sent (`mirror`)
  std::vector<std::uint32_t> gathered;  ///< owners whose selected entries are asked for (`gather`)
  std::vector<std::uint32_t> index_keys;  ///< owners whose new index keys are sent
  std::vector<std::uint32_t> selections;  ///< index sources whose selections are sent
  std::vector<std::uint32_t> candidates;  ///< the candidate source, if its blocks are sent

  bool empty() const noexcept {
    return entries.empty() && gathered.empty() && index_keys.empty() && selections.empty() &&
           candidates.empty();
  }
  friend bool operator==(const shared_state&, const shared_state&) = default;
};

/// What layers [first, last] need of layers before `first`. Owners in `gather_owners` keep the only
/// copy of their main entries; their index keys travel like those of the others. Index keys of
/// `sharded_owners` are with indexers, and come to no layer.
shared_state shared_needs(const schedule& schedule, const model_config& config, std::uint32_t first,
                          std::uint32_t last, const std::set<std::uint32_t>& gather_owners,
                          const std::set<std::uint32_t>& sharded_owners = {});

/// The part of `state` that layers [first, last] make.
shared_state made_by(const shared_state& state, std::uint32_t first, std::uint32_t last);

/// `a` and `b` together, each layer once.
shared_state merged(const shared_state& a, const shared_state& b);

/// Owners whose group a cut after `layer` separates: they stand before it, a reader of their KV
/// after it. Whoever uses a selection or candidates reads the KV that they were made on, so there
/// is no other kind of split. Ascending.
std::vector<std::uint32_t> split_owners(const schedule& schedule, std::uint32_t layer);

/// Positions that a row at `position` chooses at index source `layer`: min(top-k, entries it may
/// choose from). Follows from the configuration alone, since candidate pools always hold the newest
/// block.
std::uint32_t selected_count(const model_config& config, const layer_schedule& layer,
                             std::uint32_t position);

}  // namespace cedar::model
