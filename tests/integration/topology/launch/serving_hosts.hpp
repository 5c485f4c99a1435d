// A server at host 0 of a test's own hosts, and its nodes at others.
#pragma once

#include <string>
#include <vector>

#include "tests/integration/tools/serve/fault_watch.hpp"
#include "tests/integration/topology/launch/joining.hpp"
#include "tests/integration/topology/launch/network.hpp"

namespace cedar::test {

/// The program with `arguments`: words of a command.
std::vector<std::string> command(std::vector<std::string> arguments);
/// The command that `server` prints for node `name`, which then joins again whenever it was lost.
std::vector<std::string> rejoining(program& server, const std::string& name);
/// Connections from host 0 to `server`, which must come to listen there.
connector connector_at(const hosts& all, program& server);
/// A short answer, which must come.
std::string answer_of(const connector& connect);

}  // namespace cedar::test
