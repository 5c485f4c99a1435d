#include "topology/plan/internal/split_checks.hpp"

#include <algorithm>
#include <map>

#include "runtime/model/schedule.hpp"
#include "runtime/model/sharing.hpp"
#include "topology/document/nearest.hpp"
#include "topology/plan/internal/layer_checks.hpp"

namespace cedar::topology::internal {

namespace {

/// What the layers after a cut lack before it: text by text.
std::vector<std::string> separations(const model::schedule& schedule,
                                     const model::model_config& config, std::uint32_t cut) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> owners;
  std::map<std::uint32_t, std::vector<std::uint32_t>> sources;
  std::vector<std::uint32_t> candidate_users;
  for (std::uint32_t layer = cut + 1; layer < schedule.layers(); ++layer) {
    const model::layer_schedule& each = schedule[layer];
    if (each.owner && *each.owner <= cut) owners[*each.owner].push_back(layer);
    if (each.index_source && *each.index_source <= cut)
      sources[*each.index_source].push_back(layer);
    if (each.uses_candidates && config.candidate_source && *config.candidate_source <= cut) {
      candidate_users.push_back(layer);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [owner, readers] : owners) {
    texts.push_back(layers_text(readers) + " from the owner of their global KV, layer " +
                    std::to_string(owner));
  }
  for (const auto& [source, users] : sources) {
    texts.push_back(layers_text(users) + " from the source of their selection, layer " +
                    std::to_string(source));
  }
  if (!candidate_users.empty()) {
    texts.push_back(layers_text(candidate_users) + " from the source of their candidates, layer " +
                    std::to_string(*config.candidate_source));
  }
  return texts;
}

/// "cut after layer 3 or after layer 5": the free cuts around `cut`; empty if there is none.
std::string nearest_cuts(const model::schedule& schedule, std::uint32_t cut) {
  std::vector<std::string> texts;
  for (std::uint32_t before = cut; before-- > 0;) {
    if (!schedule.cut_is_free(before)) continue;
    texts.push_back("after layer " + std::to_string(before));
    break;
  }
  for (std::uint32_t after = cut + 1; after + 1 < schedule.layers(); ++after) {
    if (!schedule.cut_is_free(after)) continue;
    texts.push_back("after layer " + std::to_string(after));
    break;
  }
  if (texts.empty()) return "";
  return "cut " + texts.front() + (texts.size() > 1 ? " or " + texts.back() : "");
}

/// "write splits: [{owner: 6, mode: mirror}] (or mode: gather)", with all entries that the file
/// needs.
std::string entries_hint(const document& topology, const std::set<std::uint32_t>& missing) {
  std::string entries;
  for (const std::uint32_t owner : missing)
    entries += (entries.empty() ? "" : ", ") + std::string("{owner: ") + std::to_string(owner) +
               ", mode: mirror}";
  return (topology.splits.empty() ? "write splits: [" + entries + "]"
                                  : "add " + entries + " to 'splits'") +
         " (or mode: gather)";
}

std::set<std::uint32_t> owners_given(const document& topology) {
  std::set<std::uint32_t> owners;
  for (const split_entry& split : topology.splits) owners.insert(split.owner.value);
  return owners;
}

}  // namespace

std::optional<split_mode> split_mode_of(std::string_view word) noexcept {
  if (word == "mirror") return split_mode::mirror;
  if (word == "gather") return split_mode::gather;
  return std::nullopt;
}

std::set<std::uint32_t> gather_owners(const document& topology) {
  std::set<std::uint32_t> owners;
  for (const split_entry& split : topology.splits)
    if (split_mode_of(split.mode.value) == split_mode::gather) owners.insert(split.owner.value);
  return owners;
}

void check_split_entries(const document& topology, const model::model_config& config,
                         std::vector<diagnostic>& out) {
  std::map<std::uint32_t, position> seen;
  for (const split_entry& split : topology.splits) {
    const std::string owner = std::to_string(split.owner.value);
    if (!split.mode.value.empty() && !split_mode_of(split.mode.value)) {
      out.push_back(topology.mistake(split.mode.where,
                                     "there is no split mode " + in_quotes(split.mode.value),
                                     spelling_hint(split.mode.value, {"mirror", "gather"})));
    }
    if (split.owner.wrong || !split.owner.given) continue;
    if (std::ranges::find(config.kv_sources, split.owner.value) == config.kv_sources.end()) {
      out.push_back(topology.mistake(
          split.owner.where, "layer " + owner + " owns no global KV to split",
          config.kv_sources.empty() ? "remove the entry: no layer of this model does"
                                    : "the owners are " + layers_text(config.kv_sources)));
    }
    const auto [first, added] = seen.emplace(split.owner.value, split.owner.where);
    if (!added) {
      out.push_back(topology.mistake(split.owner.where, "the split of owner " + owner +
                                                            " stands twice; the first is in line " +
                                                            std::to_string(first->second.line)));
    }
  }
}

namespace {

/// Owners that the cuts separate from a reader, by the stage before the cut.
std::map<std::size_t, std::set<std::uint32_t>> separated_owners(const document& topology,
                                                                const model::schedule& schedule) {
  std::map<std::size_t, std::set<std::uint32_t>> out;
  const auto& stages = topology.units.stages;
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
    if (stages[i].layers.wrong || stages[i + 1].layers.wrong) continue;
    const std::uint32_t last = stages[i].layers.value.last;
    if (stages[i + 1].layers.value.first != last + 1) continue;
    const auto owners = model::split_owners(schedule, last);
    if (!owners.empty()) out[i].insert(owners.begin(), owners.end());
  }
  return out;
}

}  // namespace

document with_missing_splits(const document& topology, const model::model_config& config) {
  document out = topology;
  std::set<std::uint32_t> given = owners_given(topology);
  for (const auto& [i, owners] : separated_owners(topology, model::schedule(config)))
    for (const std::uint32_t owner : owners)
      if (given.insert(owner).second)
        out.splits.push_back({{owner, topology.units.where, true}, {"mirror", {}, true}});
  return out;
}

void check_cuts(const document& topology, const model::model_config& config, bool layers_fit,
                std::vector<diagnostic>& out) {
  const model::schedule schedule(config);
  const auto& stages = topology.units.stages;
  const std::set<std::uint32_t> given = owners_given(topology);
  std::set<std::uint32_t> separated;
  std::map<std::size_t, std::set<std::uint32_t>> missing;  // of the cut after stage i
  std::set<std::uint32_t> all_missing;
  for (const auto& [i, owners] : separated_owners(topology, schedule)) {
    for (const std::uint32_t owner : owners) {
      separated.insert(owner);
      if (given.contains(owner)) continue;
      missing[i].insert(owner);
      all_missing.insert(owner);
    }
  }
  for (const auto& [i, owners] : missing) {
    const std::uint32_t cut = stages[i].layers.value.last;
    std::string text = "the cut after layer " + std::to_string(cut) + ", between stages '" +
                       stages[i].name.value + "' and '" + stages[i + 1].name.value +
                       "', separates ";
    const auto reasons = separations(schedule, config, cut);
    for (std::size_t k = 0; k < reasons.size(); ++k) text += (k == 0 ? "" : "; ") + reasons[k];
    const std::string free = nearest_cuts(schedule, cut);
    out.push_back(topology.mistake(
        stages[i].layers.where, text,
        entries_hint(topology, all_missing) + ", or " +
            (free.empty() ? "keep all layers on one stage: this model has no free cut" : free)));
  }
  if (!layers_fit) return;
  for (const split_entry& split : topology.splits) {
    const std::uint32_t owner = split.owner.value;
    const bool owns = std::ranges::find(config.kv_sources, owner) != config.kv_sources.end();
    if (!owns || separated.contains(owner)) continue;
    out.push_back(topology.mistake(split.owner.where,
                                   "no cut separates owner " + std::to_string(owner) +
                                       " from its readers, " + layers_text(schedule.readers(owner)),
                                   "remove the entry, or cut between them"));
  }
}

}  // namespace cedar::topology::internal
