// `cedar node`: become a node of a topology that another process runs.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/cedar/commands.hpp"
#include "topology/launch/node.hpp"

namespace cedar::tools {

namespace {

struct options {
  std::string join;
  topology::node_options node;
  pid_t parent = 0;
  std::uint32_t join_deadline_ms = 20000;
};

int run(options& chosen) {
  if (chosen.parent != 0) {
    // Killed by the kernel when the parent dies, whatever it dies of.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != chosen.parent) return 1;
  }
  const std::size_t colon = chosen.join.rfind(':');
  chosen.node.controller_host = chosen.join.substr(0, colon);
  chosen.node.controller_port =
      static_cast<std::uint16_t>(std::stoul(chosen.join.substr(colon + 1)));
  chosen.node.join_deadline = std::chrono::milliseconds(chosen.join_deadline_ms);
  if (chosen.parent == 0)  // a person looks on
    chosen.node.on_progress = [&](const std::string& what) {
      fmt::print("cedar node '{}': {}\n", chosen.node.name, what);
      std::fflush(stdout);
    };
  const result<void> ran = topology::run_node(chosen.node);
  if (ran) return 0;
  fmt::print(stderr, "cedar node '{}': {}\n", chosen.node.name, ran.error().message);
  return 1;
}

std::string check_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string::npos;
  if (colon == 0 || !digits || std::stoul(port) == 0 || std::stoul(port) > 65535)
    return "'" + text + "' is not HOST:PORT";
  return {};
}

}  // namespace

void add_node(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("node", "Join a topology as one of its nodes");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("--join", chosen->join, "HOST:PORT of the client's control plane")
      ->required()
      ->check(check_address);
  command->add_option("--name", chosen->node.name, "What the topology calls this node")->required();
  command->add_option("--secret", chosen->node.secret, "File with the shared secret")->required();
  command
      ->add_option("--model", chosen->node.model,
                   "Folder of the checkpoint on this host, instead of the topology's")
      ->check(CLI::ExistingDirectory);
  command
      ->add_option("--join-deadline", chosen->join_deadline_ms,
                   "Milliseconds to wait for the client's answer")
      ->check(CLI::Range(1U, 86'400'000U));
  command->add_option("--parent", chosen->parent, "End together with this process");
  command->callback([chosen, &exit_code] { exit_code = run(*chosen); });
}

}  // namespace cedar::tools
