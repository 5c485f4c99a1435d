// Topology files as tests need them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cedar::test {

struct topology_options {
  std::string model{};  ///< folder; empty: given by -m
  std::uint32_t layers = 12;
  /// The last layer of each node but the last; one node for each part.
  std::vector<std::uint32_t> cuts{5};
  bool engram = true;
  bool shared_memory = false;
  bool loopback = false;  ///< all nodes in one process
  std::string drafter{};  ///< its node: one of those, or any other name; empty: there is none
  std::string vision{};  ///< likewise
  std::string experts{};  ///< likewise, of half the experts of all layers
  /// Further sections or lines, e.g. "limits: {rows_per_step: 7}".
  std::string more{};
};

/// Nodes node0, node1, ...: the scheduler, embedding and Engram on node0, the head on the last;
/// stage0, stage1, ... on one each.
std::string topology_text(const topology_options& options);

}  // namespace cedar::test
