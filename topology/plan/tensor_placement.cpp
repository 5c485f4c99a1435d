#include "topology/plan/tensor_placement.hpp"

#include <algorithm>

namespace cedar::topology {

namespace {

/// Whether a unit of this role reads a tensor.
struct reads {
  const model::expected_tensor& tensor;

  bool operator()(const scheduler_role&) const noexcept { return false; }
  bool operator()(const vision_role&) const noexcept {
    return tensor.part == model::component::vision;
  }
  bool operator()(const embedding_role&) const noexcept {
    return tensor.part == model::component::embedding;
  }
  bool operator()(const engram_role& role) const noexcept {
    return tensor.part == model::component::engram_table && tensor.layer &&
           std::ranges::count(role.shards, *tensor.layer, &model::engram_shard::layer) > 0;
  }
  bool operator()(const stage_role& stage) const noexcept {
    return model::in_text_model(tensor) && tensor.part != model::component::engram_table &&
           tensor.layer && *tensor.layer >= stage.layers.first &&
           *tensor.layer <= stage.layers.last &&
           std::ranges::none_of(stage.experts_elsewhere,
                                [&](const model::expert_slice& slice) { return is_of(slice); });
  }
  bool operator()(const experts_role& experts) const noexcept { return is_of(experts.slice); }
  bool is_of(const model::expert_slice& slice) const noexcept {
    return tensor.part == model::component::experts && tensor.layer && tensor.expert &&
           slice.holds(*tensor.layer, *tensor.expert);
  }
  bool operator()(const indexer_role&) const noexcept { return false; }
  bool operator()(const head_role&) const noexcept { return tensor.part == model::component::head; }
  bool operator()(const drafter_role&) const noexcept { return model::in_drafter(tensor); }
};

}  // namespace

std::vector<unit_id> readers_of(const plan& planned, const model::expected_tensor& tensor) {
  std::vector<unit_id> out;
  for (const unit_plan& unit : planned.units())
    if (std::visit(reads{tensor}, unit.role)) out.push_back(unit.id);
  return out;
}

bool is_in_parts(const plan& planned, const model::expected_tensor& tensor) {
  return tensor.part == model::component::engram_table && readers_of(planned, tensor).size() > 1;
}

model::expected_tensor part_of(const unit_plan& reader, const model::expected_tensor& tensor) {
  model::expected_tensor out = tensor;
  const auto* engram = std::get_if<engram_role>(&reader.role);
  if (engram != nullptr && tensor.part == model::component::engram_table)
    for (const model::engram_shard& shard : engram->shards)
      if (shard.layer == tensor.layer) out.shape.at(0) = shard.rows_count();
  return out;
}

}  // namespace cedar::topology
