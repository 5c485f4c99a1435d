#include "topology/launch/control.hpp"

#include <caf/io/all.hpp>

#include "kernels/ops/numerics.hpp"
#include "runtime/transport/control.hpp"
#include "runtime/wire/encode.hpp"

namespace cedar::topology {

namespace {
/// Threads for the actors that do not compute: scheduler, embedding, Engram, links.
constexpr std::size_t scheduler_threads = 2;
}  // namespace

std::vector<std::string> program_identity() {
  return {"cedar " CEDAR_VERSION, "message format " + std::to_string(wire::protocol_version),
          "transport format " + std::to_string(transport::transport_version),
          "arithmetic " + std::string(kernels::numerics_id)};
}

system_config::system_config(bool remote) {
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", scheduler_threads);
  set("logger.console-verbosity", caf::atom("quiet"));
  if (!remote) return;
  load<caf::io::middleman>();
  add_message_type<agent_actor>("agent_actor");
  add_message_type<deployment>("deployment");
  add_message_type<traced>("traced");
  add_message_type<link_measurement>("link_measurement");
  add_message_type<link_report>("link_report");
  add_message_type<node_report>("node_report");
  add_message_type<edge_report>("edge_report");
  add_message_type<cache_report>("cache_report");
  add_message_type<engram_report>("engram_report");
  add_message_type<node_usage>("node_usage");
  add_message_type<std::vector<std::string>>("std::vector<std::string>");
}

}  // namespace cedar::topology
