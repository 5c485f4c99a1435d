// Turns a document that passed all checks into a plan. The only maker of plans.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "runtime/model/config.hpp"
#include "runtime/model/schedule.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology::internal {

class planner {
 public:
  /// Both outlive the planner. Requires: the checks of name_checks.hpp and layer_checks.hpp found
  /// nothing.
  planner(const document& topology, const model::model_config& config)
      : document_(topology), config_(config), schedule_(config), plan_(config) {}

  /// Error: why the credit graph could deadlock.
  tl::expected<plan, std::string> make();

 private:
  void place_nodes_and_devices();
  void place_links();
  void place_units();
  void place_engram();
  void place_experts();
  void place_indexers();
  void place_stages();
  void place_bounds();
  void connect_units();

  unit_id add_unit(std::string name, node_id node, std::optional<device_id> device, unit_role role);
  unit_id add_unit(std::string name, const std::string& device, unit_role role);
  std::uint64_t replay_room() const;
  /// Adds an edge of one message a step; `extra_bytes` on top of the size is what diagnostics and
  /// sampling options may add.
  void connect(edge_kind kind, unit_id producer, unit_id consumer, const message_size& size,
               std::uint64_t extra_bytes = 0, std::uint32_t layer = 0);
  /// Edges of the state that stages on both sides of a cut share, into `reader`.
  void connect_shared_state(unit_id reader);
  /// The request for entries of `owner` and the reply.
  void connect_gather(unit_id reader, std::uint32_t owner);
  void connect_taps(unit_id producer);
  void connect_drafter();
  void connect_vision();
  /// An edge of requests or replies, one message a layer of its groups. `largest`: of one layer.
  void connect_by_layer(edge_plan edge, const message_size& size, const step_shape& largest);
  /// What `stage` asks of the slices of its layers' experts, and the answers.
  void connect_experts(unit_id stage);
  /// Index keys that it makes for indexers.
  void connect_index_keys(unit_id stage);
  /// What `stage` asks of indexers, and the answers.
  void connect_queries(unit_id stage);
  /// What comes to `stage` of the tables of its layers' Engram modules.
  void connect_engram(unit_id stage);
  void connect_shard(unit_id holder, unit_id stage, const model::engram_shard& shard);
  /// Of tables before these layers, those that are in parts.
  std::vector<model::engram_shard> shards_within(layer_range layers) const;
  /// The stage that holds `layer`.
  unit_id stage_of(std::uint32_t layer) const;
  bool in_decoder(std::uint32_t layer) const { return layer >= schedule_.decoder_begin(); }
  edge_plan new_edge(edge_kind kind, unit_id producer, unit_id consumer) const;

  const document& document_;
  const model::model_config& config_;
  model::schedule schedule_;
  plan plan_;
  unit_id scheduler_;
  std::optional<unit_id> vision_;  ///< none: nobody reads images
  unit_id embedding_;
  std::vector<unit_id> engram_;  ///< one with all tables, or by number of the shard
  std::vector<unit_id> experts_;  ///< by number of the slice
  std::vector<unit_id> indexers_;  ///< by number of the shard
  std::vector<unit_id> stages_;
  unit_id head_;
  std::optional<unit_id> drafter_;  ///< none: nobody drafts
};

}  // namespace cedar::topology::internal
