#include "tools/cedar/inspect_placement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "topology/document/document.hpp"
#include "topology/plan/tensor_placement.hpp"

namespace cedar::tools {
namespace {

void add_tensor(placement_inspection& to, const model::expected_tensor& tensor,
                std::vector<model::expected_tensor>& unread) {
  const std::vector<topology::unit_id>& readers =
      to.readers.emplace_back(topology::readers_of(to.plan, tensor));
  for (const topology::unit_id unit : readers)
    to.by_unit[unit.value].add(topology::part_of(to.plan[unit], tensor));
  if (readers.empty()) unread.push_back(tensor);
  const bool once = readers.size() == 1 || topology::is_in_parts(to.plan, tensor);
  if (once) to.once.add(tensor);
  if (once || readers.empty()) return;
  auto group = std::ranges::find(to.replicas, readers, &replicated_tensors::readers);
  if (group == to.replicas.end()) group = to.replicas.insert(group, {readers, {}, {}});
  group->names.push_back(tensor.name);
  group->sums.add(tensor);
}

}  // namespace

std::string placement_inspection::place_of(topology::unit_id unit) const {
  const topology::unit_plan& at = plan[unit];
  const std::string device = at.device ? plan[*at.device].name + " of " : "";
  return fmt::format("{} ({}{})", at.name, device, plan[at.node].name);
}

result<placement_inspection> place(const std::filesystem::path& topology,
                                   const model::model_config& config,
                                   const std::vector<model::expected_tensor>& tensors) {
  topology::reading file = topology::read_file(topology);
  // The configuration is given; its weights may be on no host yet.
  if (!file.value.model_path.given) topology::override_model(file.value, ".");
  auto planned = topology::make_plan(file, config);
  if (!planned) return fail(errc::malformed, topology::to_string(planned.error()));
  placement_inspection out{*std::move(planned), {}, {}, {}, {}, {}};
  out.by_unit.resize(out.plan.units().size());
  std::vector<model::expected_tensor> unread;
  for (const model::expected_tensor& tensor : tensors) add_tensor(out, tensor, unread);
  out.not_placed = model::totals(unread);
  return out;
}

}  // namespace cedar::tools
