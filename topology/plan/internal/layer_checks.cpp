#include "topology/plan/internal/layer_checks.hpp"

#include <algorithm>
#include <numeric>

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
    if (stages[i].layers.wrong || stages[i - 1].layers.wrong) continue;
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

/// Those whose layers could be read.
std::vector<const stage_entry*> sorted_stages(const document& topology) {
  std::vector<const stage_entry*> sorted;
  for (const stage_entry& stage : topology.units.stages)
    if (!stage.layers.wrong) sorted.push_back(&stage);
  std::stable_sort(sorted.begin(), sorted.end(), [](const stage_entry* a, const stage_entry* b) {
    return a->layers.value.first < b->layers.value.first;
  });
  return sorted;
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
  const auto sorted = sorted_stages(topology);
  // A stage of unknown layers may hold those that are on no other.
  const bool all_known = sorted.size() == topology.units.stages.size();
  const auto report = [&](const stage_entry& stage, std::string message, std::string hint) {
    valid = false;
    out.push_back(topology.mistake(stage.layers.where, std::move(message), std::move(hint)));
  };
  const stage_entry* previous = nullptr;
  std::uint32_t next = 0;  // first layer that no stage holds yet
  for (const stage_entry* stage : sorted) {
    const auto [first, last] = stage->layers.value;
    const std::string of_stage = " of stage '" + stage->name.value + "' ";
    if (last >= config.layers) {
      report(*stage,
             subject(std::max(first, config.layers), last, of_stage, "does", "do") + "not exist",
             "the model has layers 0-" + std::to_string(config.layers - 1));
    }
    if (all_known && first > next && next < config.layers) {
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
  if (all_known && next < config.layers && previous != nullptr) {
    report(*previous, subject(next, config.layers - 1, " ", "is", "are") + "on no stage",
           "every layer must be on exactly one stage; the model has layers 0-" +
               std::to_string(config.layers - 1));
  }
  return valid && all_known;
}

}  // namespace cedar::topology::internal
