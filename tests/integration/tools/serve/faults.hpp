// What tests of a server's lost processes share.
#pragma once

#include <map>
#include <ostream>
#include <vector>

#include "tests/integration/tools/serve/server.hpp"

namespace cedar::test {

/// A process behind a server, and the signal that it gets.
struct victim {
  int processes;  ///< of the server, all together
  const char* node;
  const char* stage;
  int signal;

  /// As it is named, but for its layers and the reason.
  std::string name() const;
  /// Its counter of /metrics.
  std::string losses() const;
  friend std::ostream& operator<<(std::ostream& out, const victim& one);
};

/// One stage each.
topology_options processes(int count);

/// The process of a node; -1 if there is none.
pid_t pid_of(const server& one, const std::string& node);
std::map<std::string, pid_t> pids_of_nodes(const server& one);
/// Waits for a process of `node` other than `old`.
pid_t successor_of(const server& one, const std::string& node, pid_t old);

void wait_ready(server& one);
/// By SIGTERM, which must end it well, and all its processes.
void stop(server& one);

}  // namespace cedar::test
