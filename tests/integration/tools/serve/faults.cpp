#include "tests/integration/tools/serve/faults.hpp"

#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

namespace cedar::test {

std::string victim::name() const {
  return std::string("lost node '") + node + "' (stage '" + stage + "' layers ";
}

std::string victim::losses() const {
  return std::string("cedar_node_losses_total{node=\"") + node + "\"}";
}

std::ostream& operator<<(std::ostream& out, const victim& one) {
  return out << one.node << " of " << one.processes << " processes, " << strsignal(one.signal);
}

topology_options processes(int count) {
  topology_options out;
  if (count == 3) out.cuts = {3, 5};
  return out;
}

pid_t pid_of(const server& one, const std::string& node) {
  for (const pid_t pid : one.process.descendants()) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
    const std::string line((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    const std::string name = std::string("--name") + '\0' + node + '\0';
    if (line.find(name) != std::string::npos) return pid;
  }
  return -1;
}

std::map<std::string, pid_t> pids_of_nodes(const server& one) {
  std::map<std::string, pid_t> out;
  for (const std::string node : {"node1", "node2"}) out[node] = pid_of(one, node);
  return out;
}

pid_t successor_of(const server& one, const std::string& node, pid_t old) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    const pid_t now = pid_of(one, node);
    if (now > 0 && now != old) return now;
    std::this_thread::sleep_for(5ms);
  }
  BOOST_FAIL("no successor of " << node << "; the server said " << one.process.errors());
  return -1;
}

void wait_ready(server& one) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (one.get("/ready").status != 200) {
    BOOST_REQUIRE_MESSAGE((std::chrono::steady_clock::now() < until),
                          one.get("/ready").body << one.process.errors());
    std::this_thread::sleep_for(20ms);
  }
}

void stop(server& one) {
  one.process.signal(SIGTERM);
  BOOST_TEST(one.process.wait_end());
  BOOST_TEST(one.process.code() == 0, one.process.errors());
  BOOST_TEST(one.process.processes().empty());
}

}  // namespace cedar::test
