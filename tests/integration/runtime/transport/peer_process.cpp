#include "tests/integration/runtime/transport/peer_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <fstream>

extern char** environ;

namespace cedar::transport::test {

peer_process::peer_process(const peer_options& options) {
  std::array<int, 2> in{}, out{};
  BOOST_REQUIRE_EQUAL(pipe2(in.data(), O_CLOEXEC), 0);
  BOOST_REQUIRE_EQUAL(pipe2(out.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  // UCX's sockets would be inherited, and keep this node's connections alive after its death.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  std::vector<std::string> words{TRANSPORT_PEER,
                                 options.carry,
                                 std::to_string(options.node),
                                 options.name,
                                 options.secret,
                                 std::to_string(options.silence_ms),
                                 std::to_string(options.frame_bytes_max)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  BOOST_REQUIRE_EQUAL(
      posix_spawn(&pid_, TRANSPORT_PEER, &actions, nullptr, arguments.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  to_ = in[1];
  from_ = out[0];
  const std::string line = expect("address ");
  BOOST_REQUIRE_MESSAGE(!line.empty(), "the other process does not listen");
  address_ = line.substr(std::string("address ").size());
}

peer_process::~peer_process() {
  ::close(to_);
  ::close(from_);
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void peer_process::tell(const std::string& line) {
  const std::string text = line + "\n";
  BOOST_REQUIRE_EQUAL(::write(to_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

void peer_process::echo() {
  tell("echo");
  BOOST_REQUIRE(!expect("echoing").empty());
}

void peer_process::signal(int number) {
  BOOST_REQUIRE_EQUAL(::kill(pid_, number), 0);
}

std::string peer_process::expect(const std::string& beginning, std::chrono::milliseconds within) {
  const auto until = std::chrono::steady_clock::now() + within;
  while (true) {
    for (std::size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
      const std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      if (line.starts_with(beginning)) return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd wait{from_, POLLIN, 0};
    if (left <= 0ms || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) return {};
    std::array<char, 4096> bytes{};
    const ssize_t got = ::read(from_, bytes.data(), bytes.size());
    if (got <= 0) return {};
    unread_.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

std::chrono::nanoseconds peer_process::cpu_time() const {
  // Fields 14 and 15 of /proc/PID/stat, counted after the name in brackets, in clock ticks.
  std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  long user = 0, system = 0;
  fields >> user >> system;
  return std::chrono::nanoseconds(1'000'000'000 / sysconf(_SC_CLK_TCK)) * (user + system);
}

void waiting_handler::on_frame(node_id, flow::received_frame frame) {
  const std::lock_guard lock(mutex_);
  frames_.push_back(std::move(frame));
  changed_.notify_all();
}

void waiting_handler::on_peer_up(node_id) {
  const std::lock_guard lock(mutex_);
  ++ups_;
  changed_.notify_all();
}

void waiting_handler::on_peer_lost(node_id, const error& reason) {
  const std::lock_guard lock(mutex_);
  reasons_.push_back(reason);
  changed_.notify_all();
}

bool waiting_handler::wait_up(std::size_t count, std::chrono::milliseconds within) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, within, [&] { return ups_ >= count; });
}

bool waiting_handler::wait_lost(std::size_t count, std::chrono::milliseconds within) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, within, [&] { return reasons_.size() >= count; });
}

bool waiting_handler::wait_frames(std::size_t count, std::chrono::milliseconds within) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, within, [&] { return frames_.size() >= count; });
}

error waiting_handler::reason(std::size_t index) {
  const std::lock_guard lock(mutex_);
  return reasons_.at(index);
}

std::vector<flow::received_frame> waiting_handler::take_frames() {
  const std::lock_guard lock(mutex_);
  return std::exchange(frames_, {});
}

std::size_t waiting_handler::ups() {
  const std::lock_guard lock(mutex_);
  return ups_;
}

std::size_t waiting_handler::losses() {
  const std::lock_guard lock(mutex_);
  return reasons_.size();
}

this_node::this_node(const std::string& carry, const std::string& secret) {
  options.self = here;
  options.name = "here";
  options.secret = secret_of(secret);
  options.frame_bytes_max = std::size_t{64} << 20;
  network.carry = carry == "shared" ? ucx::reach::shared_host : ucx::reach::network;
}

void this_node::open() {
  auto opened = ucx::open_port(options, network, events);
  BOOST_REQUIRE_MESSAGE(opened.has_value(), (opened ? "" : opened.error().message));
  door = std::move(*opened);
}

void this_node::connect(peer_process& peer) {
  const std::size_t before = events.ups();
  door->connect(there, peer.address(), patience);
  BOOST_REQUIRE(events.wait_up(before + 1));
  BOOST_REQUIRE(!peer.expect("up 1").empty());
}

}  // namespace cedar::transport::test
