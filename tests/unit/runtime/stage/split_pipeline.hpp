// tiny-12 cut into stages, slices of experts and indexers, without actors: every block goes by hand
// from who makes it to those that need it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "runtime/stage/expert_stage.hpp"
#include "runtime/stage/layer_stage.hpp"
#include "runtime/stage/unit.hpp"
#include "tests/unit/runtime/stage/tiny_model.hpp"

namespace cedar::test {

/// First and last layer of each stage, ascending and without gaps.
using placement = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// The shards of owners' index keys: so many of each.
std::vector<model::index_shard> shards_of(const std::map<std::uint32_t, std::uint32_t>& parts);

class split_pipeline {
 public:
  /// `slices` of experts, numbered from 0, are not with their stages, nor are the index keys of
  /// owners that have a number of indexers.
  split_pipeline(const placement& stages, const std::set<std::uint32_t>& gather_owners,
                 const std::vector<model::expert_slice>& slices = {},
                 const std::map<std::uint32_t, std::uint32_t>& indexers_of = {});

  /// Runs a step whose table wants logits of some rows; [wanted rows][vocabulary].
  std::vector<std::vector<float>> run(const flow::step_table& table);
  void apply(const flow::verdict& verdict);

  /// Messages and payload bytes that crossed a cut, by kind.
  std::map<flow::row_kind, std::pair<std::uint64_t, std::uint64_t>> traffic;
  std::vector<std::unique_ptr<stage::layer_stage>> stages;
  std::vector<std::unique_ptr<stage::expert_stage>> slices;
  std::vector<std::unique_ptr<stage::unit>> indexers;

 private:
  using blocks = std::vector<flow::row_block>;

  flow::row_block answer(const flow::row_block& request);
  /// Takes index keys for indexers out of what a stage made.
  void feed(blocks& made);
  /// Runs what was begun to its end; returns what it made, without requests.
  blocks finish(stage::layer_stage& stage, blocks made);

  stage::embedding_stage embedding_;
  stage::engram_stage engram_;
  std::unique_ptr<stage::head_stage> head_;
  std::set<std::uint32_t> sharded_;  ///< owners with indexers
};

}  // namespace cedar::test
