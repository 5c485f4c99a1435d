// Checks of cuts through Full/Reuse groups against the file's `splits`: what stages on both sides
// of a cut share must be named, because it costs bytes at every step.
#pragma once

#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "runtime/model/config.hpp"
#include "topology/document/document.hpp"

namespace cedar::topology::internal {

enum class split_mode : std::uint8_t {
  mirror,  ///< readers keep a copy of the owner's entries
  gather,  ///< the owner keeps the only copy and sends what readers select
};
std::optional<split_mode> split_mode_of(std::string_view word) noexcept;

/// Owners whose entry says `gather`.
std::set<std::uint32_t> gather_owners(const document& topology);

/// Reports entries of `splits` with an unknown mode, of layers that own nothing, and the second of
/// two entries for one owner.
void check_split_entries(const document& topology, const model::model_config& config,
                         std::vector<diagnostic>& out);
/// Reports cuts that separate a reader from an owner without an entry, with what to write and the
/// nearest free cuts; and, if every layer is on one stage (`layers_fit`), entries of owners that no
/// cut separates. Stages that do not follow each other are no cut.
void check_cuts(const document& topology, const model::model_config& config, bool layers_fit,
                std::vector<diagnostic>& out);

/// The topology with a `mirror` entry for every owner that lacks one: to judge the rest of it.
document with_missing_splits(const document& topology, const model::model_config& config);

}  // namespace cedar::topology::internal
