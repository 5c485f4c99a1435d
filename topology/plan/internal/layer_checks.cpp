#include "topology/plan/internal/layer_checks.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/model/schedule.hpp"

namespace cedar::topology::internal {

namespace {

/// "layer 3 of stage 'x' is ", "layers 3-5 are ": the beginning of a sentence.
std::string subject(std::uint32_t first, std::uint32_t last, const std::string& of,
                    const std::string& singular, const std::string& plural) {
  std::vector<std::uint32_t> layers(last - first + 1);
  std::iota(layers.begin(), layers.end(), first);
  return layers_text(layers) + of + (first == last ? singular : plural) + " ";
}

bool check_order(const document& topology, std::vector<diagnostic>& out) {
  const auto& stages = topology.units.stages;
  bool ordered = true;
  for (std::size_t i = 1; i < stages.size(); ++i) {
    if (stages[i].layers.value.first >= stages[i - 1].layers.value.first) continue;
    ordered = false;
    out.push_back(
        topology.mistake(stages[i].layers.where,
                         "stage '" + stages[i].name.value + "' stands after stage '" +
                             stages[i - 1].name.value + "' but holds earlier layers",
                         "list the stages in the order of their layers, as rows walk them"));
  }
  return ordered;
}

std::vector<const stage_entry*> sorted_stages(const document& topology) {
  std::vector<const stage_entry*> sorted;
  for (const stage_entry& stage : topology.units.stages) sorted.push_back(&stage);
  std::stable_sort(sorted.begin(), sorted.end(), [](const stage_entry* a, const stage_entry* b) {
    return a->layers.value.first < b->layers.value.first;
  });
  return sorted;
}

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

/// "after layer 3 or after layer 5": the free cuts around `cut`.
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
  if (texts.empty()) return "this model has no legal cut: keep all layers on one stage";
  return "cut " + texts.front() + (texts.size() > 1 ? " or " + texts.back() : "") +
         "; splitting layers that share state is not in this version";
}

}  // namespace

std::string layers_text(const std::vector<std::uint32_t>& layers) {
  std::string text = layers.size() == 1 ? "layer " : "layers ";
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    text += (i == 0 ? "" : ", ") + std::to_string(layers[i]);
    if (end - i > 1) text += "-" + std::to_string(layers[end - 1]);
    i = end;
  }
  return text;
}

bool check_layers(const document& topology, const model::model_config& config,
                  std::vector<diagnostic>& out) {
  bool valid = check_order(topology, out);
  const auto report = [&](const stage_entry& stage, std::string message, std::string hint) {
    valid = false;
    out.push_back(topology.mistake(stage.layers.where, std::move(message), std::move(hint)));
  };
  const stage_entry* previous = nullptr;
  std::uint32_t next = 0;  // first layer that no stage holds yet
  for (const stage_entry* stage : sorted_stages(topology)) {
    const auto [first, last] = stage->layers.value;
    const std::string of_stage = " of stage '" + stage->name.value + "' ";
    if (last >= config.layers) {
      report(*stage,
             subject(std::max(first, config.layers), last, of_stage, "does", "do") + "not exist",
             "the model has layers 0-" + std::to_string(config.layers - 1));
    }
    if (first > next && next < config.layers) {
      report(*stage,
             subject(next, std::min(first, config.layers) - 1, " ", "is", "are") + "on no stage",
             "every layer must be on exactly one stage");
    }
    if (first < next && previous != nullptr) {
      report(*stage,
             subject(first, std::min(last, next - 1), of_stage, "is", "are") + "on stage '" +
                 previous->name.value + "' too",
             "every layer must be on exactly one stage");
    }
    if (last + 1 > next) {
      next = last + 1;
      previous = stage;
    }
  }
  if (next < config.layers && previous != nullptr) {
    report(*previous, subject(next, config.layers - 1, " ", "is", "are") + "on no stage",
           "every layer must be on exactly one stage; the model has layers 0-" +
               std::to_string(config.layers - 1));
  }
  return valid;
}

void check_cuts(const document& topology, const model::model_config& config,
                std::vector<diagnostic>& out) {
  const model::schedule schedule(config);
  const auto& stages = topology.units.stages;
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
    const std::uint32_t cut = stages[i].layers.value.last;
    if (schedule.cut_is_free(cut)) continue;
    std::string text = "the cut after layer " + std::to_string(cut) + ", between stages '" +
                       stages[i].name.value + "' and '" + stages[i + 1].name.value +
                       "', separates ";
    const auto reasons = separations(schedule, config, cut);
    for (std::size_t k = 0; k < reasons.size(); ++k) text += (k == 0 ? "" : "; ") + reasons[k];
    out.push_back(topology.mistake(stages[i].layers.where, text, nearest_cuts(schedule, cut)));
  }
}

}  // namespace cedar::topology::internal
