#include "tests/integration/support/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace cedar::test {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds look_interval{2};
const std::string tag_name = "CEDAR_TEST_PROGRAM=";

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Fields of /proc/PID/stat from the third (the state) on; empty if the process is gone.
std::vector<std::string> stat_of(pid_t pid) {
  const std::string text = read_all("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 2));
  return {std::istream_iterator<std::string>(fields), std::istream_iterator<std::string>()};
}

std::vector<pid_t> all_pids() {
  std::vector<pid_t> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed == std::errc{} && end == name.data() + name.size()) out.push_back(pid);
  }
  return out;
}

/// A pipe whose write end becomes descriptor `number` of the program; returns the read end.
int add_pipe(posix_spawn_file_actions_t& actions, int number, int& write_end) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  posix_spawn_file_actions_adddup2(&actions, ends[1], number);
  write_end = ends[1];
  return ends[0];
}

std::string next_tag() {
  static int number = 0;
  return tag_name + std::to_string(::getpid()) + "." + std::to_string(++number);
}

}  // namespace

program::program(const std::filesystem::path& path, const std::vector<std::string>& arguments)
    : tag_(next_tag()) {
  std::vector<std::string> words{path.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  std::string tag = tag_;
  environment.push_back(tag.data());
  environment.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  int output_end = -1;
  int errors_end = -1;
  output_pipe_ = add_pipe(actions, STDOUT_FILENO, output_end);
  errors_pipe_ = add_pipe(actions, STDERR_FILENO, errors_end);
  const int failed =
      ::posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(output_end);
  ::close(errors_end);
  if (failed != 0) throw std::runtime_error("cannot start " + path.string());
  process_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (process_ < 0) throw std::runtime_error("pidfd_open");
}

program::~program() {
  for (const pid_t pid : processes()) ::kill(pid, SIGKILL);
  if (code_ < 0) ::waitpid(pid_, nullptr, 0);
  for (const int descriptor : {process_, output_pipe_, errors_pipe_})
    if (descriptor >= 0) ::close(descriptor);
}

void program::signal(int number) const {
  BOOST_REQUIRE_EQUAL(::kill(pid_, number), 0);
}

void program::take(int& pipe, std::string& to) {
  std::array<char, 65536> bytes{};
  while (pipe >= 0) {
    const ssize_t got = ::read(pipe, bytes.data(), bytes.size());
    if (got < 0) return;  // nothing more for now
    if (got == 0) {
      ::close(pipe);
      pipe = -1;
      return;
    }
    to.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

/// Takes what comes next; false if nothing came.
bool program::pump(clock::time_point until) {
  std::vector<pollfd> waits;
  for (const int descriptor : {output_pipe_, errors_pipe_, code_ < 0 ? process_ : -1})
    if (descriptor >= 0) waits.push_back({descriptor, POLLIN, 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
  if (waits.empty() || left <= 0ms) return false;
  if (::poll(waits.data(), waits.size(), static_cast<int>(left.count())) <= 0) return false;
  take(output_pipe_, output_);
  take(errors_pipe_, errors_);
  int status = 0;
  if (code_ < 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    // What it wrote before its end is in the pipes by now.
    take(output_pipe_, output_);
    take(errors_pipe_, errors_);
  }
  return true;
}

bool program::wait_output(const std::string& text, std::chrono::milliseconds within) {
  const auto until = clock::now() + within;
  while (!contains(output_, text))
    if (!pump(until)) return false;
  return true;
}

bool program::wait_errors(const std::string& text, std::chrono::milliseconds within) {
  const auto until = clock::now() + within;
  while (!contains(errors_, text))
    if (!pump(until)) return false;
  return true;
}

bool program::wait_end(std::chrono::milliseconds within) {
  const auto until = clock::now() + within;
  while (code_ < 0)
    if (!pump(until)) return false;
  return true;
}

std::vector<pid_t> program::processes() const {
  std::vector<pid_t> out;
  for (const pid_t pid : all_pids()) {
    const std::string environment = read_all("/proc/" + std::to_string(pid) + "/environ");
    if (!contains('\0' + environment, '\0' + tag_ + '\0')) continue;
    const auto stat = stat_of(pid);
    if (!stat.empty() && stat[0] != "Z" && stat[0] != "X") out.push_back(pid);
  }
  return out;
}

std::vector<pid_t> program::descendants() const {
  std::vector<pid_t> out = processes();
  std::erase(out, pid_);
  return out;
}

bool program::wait_descendants(std::size_t count, std::chrono::milliseconds within) const {
  const auto until = clock::now() + within;
  while (descendants().size() != count) {
    if (clock::now() >= until) return false;
    std::this_thread::sleep_for(look_interval);
  }
  return true;
}

std::chrono::nanoseconds program::cpu_time() const {
  std::chrono::nanoseconds sum{0};
  for (const pid_t pid : processes()) sum += cpu_time_of(pid);
  return sum;
}

finished run(const std::filesystem::path& path, const std::vector<std::string>& arguments) {
  const auto begin = clock::now();
  program started(path, arguments);
  const bool ended = started.wait_end();
  BOOST_TEST(ended, "the program did not end");
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin);
  BOOST_TEST(started.wait_descendants(0, 2s), "a process is left behind");
  return {started.code(), started.output(), started.errors(), took};
}

std::chrono::nanoseconds cpu_time_of(pid_t pid) {
  clockid_t id{};
  timespec used{};
  if (::clock_getcpuclockid(pid, &id) != 0 || ::clock_gettime(id, &used) != 0) return 0ns;
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> out;
  for (const pid_t other : all_pids())
    if (const auto stat = stat_of(other); stat.size() > 1 && stat[1] == std::to_string(pid))
      out.push_back(other);
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace cedar::test
