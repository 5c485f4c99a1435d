#include "tests/integration/topology/launch/network.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "tests/integration/support/program.hpp"

namespace cedar::test {

namespace {

/// Where a program of the system is; empty if it is not installed.
std::string found(const std::string& name) {
  for (const char* folder : {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"})
    if (std::filesystem::exists(folder + name)) return folder + name;
  return {};
}

/// Own network devices, and a /sys that lists them: UCX looks there.
bool isolate() {
  return ::unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0;
}

/// A process in a network namespace of its own; `failed` is why there is none, or 0.
pid_t hold(int& failed) {
  std::array<int, 2> ends{};
  BOOST_REQUIRE_EQUAL(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int error = ::getppid() == parent && isolate() ? 0 : errno;
    static_cast<void>(!::write(ends[1], &error, sizeof error));
    while (error == 0) ::pause();
    ::_exit(0);
  }
  ::close(ends[1]);
  failed = EIO;
  static_cast<void>(!::read(ends[0], &failed, sizeof failed));
  ::close(ends[0]);
  return child;
}

void release(pid_t holder) {
  if (holder <= 0) return;
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
}

std::string device(int host) {
  return "cable" + std::to_string(host);
}

/// Of the switch, where the cable of `host` ends.
std::string port(int host) {
  return "port" + std::to_string(host);
}

}  // namespace

std::string hosts::enter() {
  return found("nsenter");
}

hosts::hosts(std::size_t count) : holders_(count, -1) {
  for (pid_t& holder : holders_) {
    int failed = 0;
    holder = hold(failed);
    BOOST_REQUIRE_EQUAL(failed, 0);
  }
}

hosts::~hosts() {
  for (const pid_t holder : holders_) release(holder);
}

std::vector<std::string> hosts::on(int host, const std::vector<std::string>& words) const {
  std::vector<std::string> out{"--target", std::to_string(holders_[host]), "--net", "--mount"};
  out.insert(out.end(), words.begin(), words.end());
  return out;
}

void hosts::move_to(int host) const {
  const std::string path = "/proc/" + std::to_string(holders_[host]) + "/ns/net";
  const int space = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool moved = ::setns(space, CLONE_NEWNET) == 0;
  ::close(space);
  if (!moved) throw std::runtime_error(path + ": " + std::strerror(errno));
}

void hosts::link(int host, const std::string& device, int peer_host,
                 const std::string& peer) const {
  const finished linked = run(
      found("ip"), {"link", "add", device, "netns", std::to_string(holders_[host]), "type", "veth",
                    "peer", "name", peer, "netns", std::to_string(holders_[peer_host])});
  BOOST_REQUIRE_MESSAGE(linked.code == 0, linked.errors);
}

void hosts::configure(int host, const std::vector<std::string>& arguments) const {
  std::vector<std::string> words{found("ip")};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const finished done = run(enter(), on(host, words));
  BOOST_REQUIRE_MESSAGE(done.code == 0, done.errors);
}

void hosts::bring_up() const {
  const int count = static_cast<int>(holders_.size());
  for (int host = 0; host < count; ++host) {
    configure(host,
              {"addr", "add", "10.77.0." + std::to_string(host + 1) + "/24", "dev", device(host)});
    configure(host, {"link", "set", device(host), "up"});
    configure(host, {"link", "set", "lo", "up"});
  }
  for (int host = 0; host < count; ++host) await_carrier(host);
}

/// The system takes up to a second to notice that both ends are up.
void hosts::await_carrier(int host) const {
  const std::vector<std::string> look =
      on(host, {found("cat"), "/sys/class/net/" + device(host) + "/operstate"});
  const auto until = std::chrono::steady_clock::now() + patience;
  while (run(enter(), look).output != "up\n") {
    BOOST_REQUIRE((std::chrono::steady_clock::now() < until));
    std::this_thread::sleep_for(20ms);
  }
}

two_hosts::two_hosts() : hosts(2) {
  link(0, device(0), 1, device(1));
  bring_up();
}

void two_hosts::cut() const {
  configure(0, {"addr", "flush", "dev", device(0)});
}

void two_hosts::pull() const {
  configure(0, {"link", "set", device(0), "down"});
}

void two_hosts::plug() const {
  configure(0, {"link", "set", device(0), "up"});
}

three_hosts::three_hosts() : hosts(3) {
  configure(0, {"link", "add", device(0), "type", "bridge"});
  for (int host = 1; host < 3; ++host) {
    link(0, port(host), host, device(host));
    configure(0, {"link", "set", port(host), "master", device(0), "up"});
  }
  bring_up();
}

/// Ports that are isolated reach the switch itself, and not each other.
void three_hosts::isolate(const char* on_or_off) const {
  for (int host = 1; host < 3; ++host)
    configure(0, {"link", "set", "dev", port(host), "type", "bridge_slave", "isolated", on_or_off});
}

void three_hosts::part() const {
  isolate("on");
}

void three_hosts::join() const {
  isolate("off");
}

boost::test_tools::assertion_result can_have_two_hosts(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result no(false);
  for (const char* name : {"ip", "nsenter"}) {
    if (!found(name).empty()) continue;
    no.message() << "there is no program '" << name << "' (iproute2, util-linux)";
    return no;
  }
  int failed = 0;
  const pid_t holder = hold(failed);
  release(holder);
  if (failed == 0) return true;
  no.message() << "this process may not create network namespaces: " << std::strerror(failed);
  return no;
}

boost::test_tools::assertion_result can_have_three_hosts(boost::unit_test::test_unit_id test) {
  boost::test_tools::assertion_result can = can_have_two_hosts(test);
  if (!can) return can;
  int failed = 0;
  const pid_t holder = hold(failed);
  const finished made = run(found("nsenter"), {"--target", std::to_string(holder), "--net",
                                               found("ip"), "link", "add", "type", "bridge"});
  release(holder);
  if (made.code == 0) return true;
  boost::test_tools::assertion_result no(false);
  no.message() << "this system has no network bridges: " << made.errors;
  return no;
}

}  // namespace cedar::test
