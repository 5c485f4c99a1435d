// A placement of tiny-40 on nodes, and what it must give.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "runtime/session/step_scheduler.hpp"
#include "runtime/stage/model_source.hpp"
#include "topology/plan/message_size.hpp"

namespace cedar::test {

/// Experts `ids` of layers first..last, on a node.
struct placed_experts {
  std::uint32_t node = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::set<std::uint32_t> ids;
};

/// The index keys of an owner, in shards on these nodes.
struct placed_index {
  std::uint32_t owner = 0;
  std::vector<std::uint32_t> nodes;
};

/// Rows first..last of the table of the Engram module before a layer, on a node.
struct placed_shard {
  std::uint32_t node = 0;
  std::uint32_t layer = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

struct placement {
  std::vector<std::uint32_t> cuts;  ///< last layer of every stage but the last
  std::vector<std::uint32_t> nodes;  ///< of every stage
  std::uint32_t engram_node = 0;
  std::uint32_t head_node = 0;
  std::set<std::uint32_t> gather;  ///< owners split by `gather`; other split owners by `mirror`
  std::uint32_t rows_per_step = 64;
  bool bounded = false;
  std::optional<std::uint32_t> drafter_node;  ///< then requests run one after another
  std::vector<placed_experts> experts;  ///< those on none of them are with their stages
  std::vector<placed_index> indexers;  ///< owners without have their keys with their stages
  std::vector<placed_shard> shards;  ///< none: all tables on engram_node
  std::uint32_t prefix_positions = 0;
  bool processes = false;  ///< nodes are processes that talk UCX; else all in this process

  friend std::ostream& operator<<(std::ostream& out, const placement& p);
};

/// tiny-40 (tests/data/golden), opened once.
const stage::model_source& model_of_placements();

/// One cut, after `layer`, the parts on two nodes.
placement two_way(std::uint32_t layer, bool gather);
/// Two to five stages anywhere on up to four nodes. A seed is a placement.
placement random_placement(std::uint64_t seed);

/// The same with a drafter, on one of its nodes or, every third time, on one of its own.
placement with_drafter(placement p, std::uint64_t seed);

/// The same with one to four slices of experts, on its nodes and on up to two of their own.
placement with_experts(placement p, std::uint64_t seed);

/// The same with one to four indexers of each of some owners, likewise.
placement with_indexers(placement p, std::uint64_t seed);

/// The same with Engram's tables in two to four parts each, on its nodes and on one of their own.
placement with_shards(placement p, std::uint64_t seed);

std::string topology_text(const placement& p);

/// Three requests, one of them longer than the window, in the mode of the placement.
std::vector<session::generation_request> placement_requests(bool bounded);

/// One row that was answered.
struct placed_row {
  std::size_t request = 0;
  std::uint32_t position = 0;
  token_id token = 0;
  float log_probability = 0;
  std::vector<float> logits;

  friend bool operator==(const placed_row&, const placed_row&) = default;
};

/// The next turn of every request: its prompt, the answer so far and some more ids.
std::vector<session::generation_request> next_turn(
    std::vector<session::generation_request> requests, const std::vector<placed_row>& rows);

/// The local engine's answer, with the steps that it took.
struct expected_run {
  std::vector<flow::step_table> tables;
  std::vector<std::vector<flow::draft_order>> orders;  ///< after each of them
  std::vector<topology::step_routes> routes;  ///< of each of them
  std::vector<topology::step_addresses> addresses;  ///< likewise
  std::vector<placed_row> rows;
};
const expected_run& expected_of(const session::scheduler_limits& limits, bool bounded);
/// Of requests and then of their next turn, which begins with what they leave: the rows of both.
expected_run expected_of_turns(const session::scheduler_limits& limits,
                               const std::vector<session::generation_request>& requests);

}  // namespace cedar::test
