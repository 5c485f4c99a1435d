#include "topology/plan/internal/draft_checks.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"
#include "runtime/flow/draft.hpp"

namespace cedar::topology::internal {

std::uint32_t draft_tokens_max(const model::model_config& config) noexcept {
  return config.dspark.blocks == 0 ? 0
                                   : std::min(config.dspark.block_size, flow::draft_tokens_limit);
}

session::draft_setting draft_of(const document& topology, const model::model_config& config) {
  if (!topology.draft.given) {
    const bool placed = topology.units.drafter.has_value();
    return {placed ? draft_tokens_max(config) : 0, placed};
  }
  const auto setting = session::draft_setting_of(topology.draft.value);
  CEDAR_ASSERT(setting.has_value(), "the draft setting was checked");
  if (setting->automatic) return {draft_tokens_max(config), true};
  return *setting;
}

void check_draft(const document& topology, const model::model_config& config,
                 std::vector<diagnostic>& out) {
  const auto& drafter = topology.units.drafter;
  const std::uint32_t most = draft_tokens_max(config);
  if (drafter && most == 0) {
    out.push_back(topology.mistake(
        drafter->where, "the model has no draft blocks for 'units.drafter' to run", "remove it"));
    return;
  }
  if (!topology.draft.given || topology.draft.wrong) return;
  const std::string said = "'draft' is " + in_quotes(topology.draft.value);
  const auto setting = session::draft_setting_of(topology.draft.value);
  if (!setting) {
    out.push_back(topology.mistake(topology.draft.where, said, setting.error().message));
  } else if (*setting != session::draft_setting{} && !drafter && !topology.units.stages.empty()) {
    out.push_back(topology.mistake(
        topology.draft.where, said + ", but no drafter is placed",
        most == 0 ? "write draft: off: the model has no draft blocks"
                  : "add drafter: {device: DEVICE} to 'units', or write draft: off"));
  } else if (setting->tokens > most && drafter) {
    out.push_back(topology.mistake(
        topology.draft.where,
        said + ", but the model's drafter proposes " + std::to_string(most) + " tokens at once",
        "write at most fixed:" + std::to_string(most)));
  }
}

}  // namespace cedar::topology::internal
