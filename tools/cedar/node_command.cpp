// `cedar node`: become a node of a topology that another process runs.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "tools/cedar/commands.hpp"
#include "tools/cedar/signal_watch.hpp"
#include "topology/launch/node.hpp"
#include "topology/launch/secret.hpp"

namespace cedar::tools {

namespace {

struct options {
  std::string join;
  topology::node_options node;
  pid_t parent = 0;
  bool rejoin = false;
  std::uint32_t join_deadline_ms = 20000;
};

/// Of a node that need not try again: secret, name, version or checkpoint are wrong.
constexpr int exit_refused = 3;
/// Between two lives of a node: doubled from the first to the second, and begun anew after a life
/// that was long enough to have joined.
constexpr std::chrono::milliseconds pause_min{100};
constexpr std::chrono::milliseconds pause_max{5000};
constexpr std::chrono::seconds long_life{10};

/// Killed by the kernel when the parent dies, whatever it dies of. False: it is dead.
bool end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent;
}

int run(options& chosen) {
  if (chosen.parent != 0 && !end_with(chosen.parent)) return 1;
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
  const errc code = ran.error().code;
  return chosen.rejoin && (code == errc::refused || code == errc::mismatch) ? exit_refused : 1;
}

/// Waits for one of `signals`, at most so long; 0: none came.
int await_signal(const sigset_t& signals, std::optional<std::chrono::milliseconds> limit) {
  const timespec time{limit ? limit->count() / 1000 : 0,
                      limit ? limit->count() % 1000 * 1'000'000 : 0};
  const int number =
      limit ? sigtimedwait(&signals, nullptr, &time) : sigwaitinfo(&signals, nullptr);
  return std::max(number, 0);
}

/// The node is a process of its own, time and again, because a client takes one process for one
/// node. This one only waits for its end: it has no thread, so it may fork.
class returning_node {
 public:
  explicit returning_node(options& chosen) : chosen_(chosen) {
    all_ = to_end_;
    sigaddset(&all_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &all_, &before_);
  }
  ~returning_node() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  returning_node(const returning_node&) = delete;
  returning_node& operator=(const returning_node&) = delete;

  /// Until the client says that it is over, or a signal does; then 0.
  int run_lives() {
    auto pause = pause_min;
    while (true) {
      const auto begin = std::chrono::steady_clock::now();
      const std::optional<int> code = run_life();
      if (!code || *code == 0) return 0;
      if (*code == exit_refused) return 1;
      if (std::chrono::steady_clock::now() - begin >= long_life) pause = pause_min;
      if (await_signal(to_end_, pause) != 0) return 0;
      pause = std::min(2 * pause, pause_max);
    }
  }

 private:
  /// Its exit code, 1 if a signal ended it; nothing if one ended this process.
  std::optional<int> run_life() {
    const pid_t here = getpid();
    const pid_t child = fork();
    if (child == 0) {
      sigprocmask(SIG_SETMASK, &before_, nullptr);
      std::_Exit(end_with(here) ? run(chosen_) : 1);
    }
    if (child < 0) {
      fmt::print(stderr, "cedar node '{}': cannot fork: {}\n", chosen_.node.name,
                 std::strerror(errno));
      return 1;
    }
    int status = 0;
    while (waitpid(child, &status, WNOHANG) != child) {
      const int number = await_signal(all_, std::nullopt);
      if (number == 0 || sigismember(&to_end_, number) == 0) continue;
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return std::nullopt;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }

  options& chosen_;
  sigset_t to_end_ = ending_signals();
  sigset_t all_{};
  sigset_t before_{};
};

int run_or_return(options& chosen) {
  if (!chosen.rejoin) return run(chosen);
  // What is wrong on this host will not be right later.
  if (const auto secret = topology::secret_file::read(chosen.node.secret); !secret) {
    fmt::print(stderr, "cedar node '{}': {}\n", chosen.node.name, secret.error().message);
    return 1;
  }
  return returning_node(chosen).run_lives();
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
  CLI::Option* parent =
      command->add_option("--parent", chosen->parent, "End together with this process");
  command
      ->add_flag(
          "--rejoin", chosen->rejoin,
          "Join again whenever the node ends, until the client stops it for good; wait for a "
          "client that is not there")
      ->excludes(parent);
  command->callback([chosen, &exit_code] { exit_code = run_or_return(*chosen); });
}

}  // namespace cedar::tools
