#include "tools/cedar/serve_child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

namespace cedar::tools {

namespace {

constexpr std::chrono::milliseconds look_interval{5};
constexpr std::string_view listening = "listening on ";

/// The parent of `pid` and its resident bytes; false if it is gone.
bool read_process(pid_t pid, pid_t& parent, std::uint64_t& bytes) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  bool has_parent = false;
  for (std::string line; std::getline(file, line);) {
    const auto number = [&](std::string_view name) {
      return std::strtoull(line.c_str() + name.size(), nullptr, 10);
    };
    if (line.starts_with("PPid:")) {
      parent = static_cast<pid_t>(number("PPid:"));
      has_parent = true;
    } else if (line.starts_with("VmRSS:")) {
      bytes = number("VmRSS:") * 1024;
    }
  }
  return has_parent;
}

/// Between fork and exec: only calls that a signal handler may make.
[[noreturn]] void become_server(char* const* arguments, int output, pid_t parent) {
  // Ctrl-C in a terminal is for the parent, which then says how to end.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::execv("/proc/self/exe", arguments);
  ::_exit(127);
}

}  // namespace

memory_sample memory_of(pid_t root) {
  struct process {
    pid_t parent = 0;
    std::uint64_t bytes = 0;
  };
  std::map<pid_t, process> all;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (read.ec != std::errc{} || read.ptr != name.data() + name.size()) continue;
    process one;
    if (read_process(pid, one.parent, one.bytes)) all[pid] = one;
  }
  memory_sample out;
  for (const auto& [pid, one] : all) {
    pid_t above = pid;
    while (above != root && all.contains(above)) above = all.at(above).parent;
    if (above != root) continue;
    ++out.processes;
    out.bytes += one.bytes;
  }
  return out;
}

result<std::unique_ptr<serve_child>> serve_child::start(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"cedar", "serve"});
  arguments.insert(arguments.end(), {"--listen", "127.0.0.1:0"});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return fail(errc::io, std::string("pipe: ") + std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become_server(pointers.data(), pipe[1], parent);
  ::close(pipe[1]);
  if (pid < 0) {
    ::close(pipe[0]);
    return fail(errc::io, std::string("fork: ") + std::strerror(errno));
  }
  std::unique_ptr<serve_child> made(new serve_child(pid));
  const result<void> listens = made->wait_listening(pipe[0]);
  // Nothing but that line is ever written to it.
  ::close(pipe[0]);
  if (!listens) return fail(listens.error());
  return made;
}

result<void> serve_child::wait_listening(int output) {
  std::string said;
  std::array<char, 256> bytes{};
  while (said.find('\n') == std::string::npos) {
    const ssize_t some = ::read(output, bytes.data(), bytes.size());
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return fail(errc::refused, "cedar serve ended before it took requests");
    said.append(bytes.data(), static_cast<std::size_t>(some));
  }
  if (!said.starts_with(listening))
    return fail(errc::refused, "cedar serve does not say where it listens but: " + said);
  auto url = http::parse_server_url(
      std::string_view(said).substr(listening.size(), said.find('\n') - listening.size()));
  if (!url) return fail(url.error());
  url_ = std::move(*url);
  return {};
}

result<void> serve_child::stop(std::chrono::milliseconds limit) {
  ::kill(pid_, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= until)
      return fail(errc::timeout, "cedar serve did not end within " + std::to_string(limit.count()) +
                                     " ms, and is killed");
    std::this_thread::sleep_for(look_interval);
  }
  pid_ = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(errc::peer_lost,
              WIFSIGNALED(status)
                  ? "cedar serve ended by signal " + std::to_string(WTERMSIG(status))
                  : "cedar serve ended with exit status " + std::to_string(WEXITSTATUS(status)));
}

serve_child::~serve_child() {
  if (pid_ == 0) return;
  // Its nodes end with it.
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace cedar::tools
