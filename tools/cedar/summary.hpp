// A run in a few lines, from its trace: speed, what every edge carried, which links carried it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/trace.hpp"
#include "runtime/session/request.hpp"
#include "topology/launch/control.hpp"

namespace cedar::tools {

struct edge_summary {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::int64_t waited_us = 0;  ///< for credit, all messages together
};

struct unit_summary {
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  std::int64_t compute_us = 0;
  std::int64_t wait_us = 0;  ///< some inputs there, others not
};

struct run_summary {
  std::map<std::string, engram_counts> engram;  ///< by unit, of those that have to do with it
  std::map<std::string, edge_summary> edges;
  std::map<std::string, unit_summary> units;
  std::vector<std::string> links;  ///< "front -> back: tcp/lo, 123 frames, 4.5 kB"; what was
                                   ///< measured of them
  std::uint64_t proposals = 0;  ///< steps that were answered
  std::int64_t first_token_us = 0;  ///< process start to the first proposal
  std::int64_t steps_us = 0;  ///< first proposal to the last
};

std::vector<trace_process> trace_of(const std::vector<topology::node_report>& reports);

/// `begin`: when this process began.
run_summary summarize(const std::vector<topology::node_report>& reports,
                      trace_clock::time_point begin);

/// `used`: numbers of every request that was run.
std::string render_summary(const run_summary& run, std::size_t processes,
                           const std::vector<session::usage>& used);

}  // namespace cedar::tools
