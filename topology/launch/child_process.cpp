#include "topology/launch/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstring>
#include <thread>
#include <utility>

extern char** environ;

namespace cedar::topology {

namespace {

/// What the spawned process starts with: no blocked signals, its own group, no input, none of our
/// descriptors but the standard ones.
struct spawn_settings {
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_t files{};

  spawn_settings() {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&files);
    sigset_t none;
    sigemptyset(&none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    // UCX opens sockets without close-on-exec: a child that kept them would hold a dead node's
    // connections open.
    posix_spawn_file_actions_addclosefrom_np(&files, 3);
  }
  ~spawn_settings() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
  }
  spawn_settings(const spawn_settings&) = delete;
  spawn_settings& operator=(const spawn_settings&) = delete;
};

std::string describe(int status) {
  if (WIFSIGNALED(status))
    return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

result<child_process> child_process::start(const std::string& program,
                                           const std::vector<std::string>& arguments) {
  std::vector<std::string> owned{program};
  owned.insert(owned.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& argument : owned) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const spawn_settings settings;
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, program.c_str(), &settings.files, &settings.attributes,
                                 pointers.data(), environ);
  if (failed != 0) return fail(errc::io, "cannot start " + program + ": " + std::strerror(failed));
  return child_process(pid);
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), ended_(std::exchange(other.ended_, "moved")) {}

child_process::~child_process() {
  kill();
}

std::optional<std::string> child_process::ended() {
  if (ended_ || pid_ == 0) return ended_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) ended_ = describe(status);
  return ended_;
}

bool child_process::wait(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!ended()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

void child_process::kill() {
  if (ended() || pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  if (waitpid(pid_, &status, 0) == pid_) ended_ = describe(status);
}

}  // namespace cedar::topology
