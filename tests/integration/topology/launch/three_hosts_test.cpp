// Goal: two nodes that lose each other, while the client reaches both, are named, and the pipeline
// comes back without a new process when their network does. Method: network namespaces as hosts,
// one of them a switch that keeps the two others apart.
#include <signal.h>

#include <boost/test/unit_test.hpp>

#include "tests/integration/topology/launch/serving_hosts.hpp"

using namespace cedar::test;
namespace ut = boost::unit_test;

namespace {

/// Each node on its host.
void place(joining& here) {
  std::string text = here.topology();
  for (int node = 0; node < 3; ++node) {
    const std::string address = "node" + std::to_string(node) + ": {address: ";
    text = replaced(text, address + "127.0.0.1", address + "10.77.0." + std::to_string(node + 1));
  }
  text = replaced(text, "tls: [tcp, self]", "tls: [tcp, self], devices: [cable0, cable1, cable2]");
  here.write_topology(replaced(text, "{secret_file", "{allow_remote: true, secret_file"));
}

const std::vector<std::string> names{
    "node 'node1' lost node 'node2' (stage 'stage2' layers 6-11, head)",
    "node 'node2' lost node 'node1' (stage 'stage1' layers 4-5)"};

constexpr const char* counter = "cedar_link_losses_total{node=\"node1\",peer=\"node2\"}";

struct serving {
  explicit serving(const std::string& more) : here(3, more) {
    place(here);
    server.emplace(hosts::enter(), all.on(0, command(here.serve_arguments())));
    node1.emplace(hosts::enter(), all.on(1, rejoining(*server, "node1")));
    node2.emplace(hosts::enter(), all.on(2, rejoining(*server, "node2")));
    connect = connector_at(all, *server);
    before = answer_of(connect);
    lives = {node1->descendants(), node2->descendants()};
  }

  /// Waits until the server answers again, by the processes that it had.
  void check_back() {
    BOOST_REQUIRE_MESSAGE(server->wait_errors("serving again after "), server->errors());
    BOOST_TEST(answer_of(connect) == before);
    BOOST_TEST((lives == std::vector{node1->descendants(), node2->descendants()}));
    const auto look = connect();
    look->send("GET", "/metrics");
    const std::string metrics = look->receive().body;
    for (const char* node : {"node1", "node2"}) {
      const std::string losses = std::string("cedar_node_losses_total{node=\"") + node + "\"}";
      BOOST_TEST(value_of(metrics, losses) == 0, node);
    }
    server->signal(SIGTERM);
    for (program* one : {&*server, &*node1, &*node2}) {
      BOOST_REQUIRE(one->wait_end());
      BOOST_TEST(one->code() == 0, one->errors());
    }
  }

  const three_hosts all;
  joining here;
  std::optional<program> server, node1, node2;
  connector connect;
  std::string before;
  std::vector<std::vector<pid_t>> lives;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(three_hosts_of_a_topology, *ut::precondition(can_have_three_hosts))

BOOST_AUTO_TEST_CASE(name_two_nodes_that_lose_each_other_in_prefill_and_decode) {
  serving here(small_chunks);
  work_under_way work(here.connect);
  fault_watch watch(here.connect(), {counter});
  const auto fault = std::chrono::steady_clock::now();
  here.all.part();
  const auto in_stream = work.check_named(names);
  const auto seen = watch.wait();
  BOOST_TEST(contains_any(seen.problem, names), seen.problem);
  BOOST_TEST(seen.counted);
  BOOST_TEST(here.server->wait_errors("the pipeline has failed: "), here.server->errors());
  BOOST_TEST(contains_any(here.server->errors(), names), here.server->errors());
  tell_times("two nodes apart", fault, in_stream, seen, std::chrono::steady_clock::now());
  here.all.join();
  here.check_back();
}

BOOST_AUTO_TEST_CASE(try_again_while_two_nodes_are_apart) {
  serving here("deadlines_ms: {start: 3000}\n");
  here.all.part();
  BOOST_REQUIRE_MESSAGE(here.server->wait_errors("the pipeline is not back yet: "),
                        here.server->errors());
  const auto look = here.connect();
  look->send("GET", "/ready");
  const http_reply ready = look->receive();
  BOOST_TEST(ready.status == 503);
  BOOST_TEST(contains_any(ready.body, names), ready.body);
  BOOST_TEST(contains(ready.body, "; not back yet: node "), ready.body);
  here.all.join();
  here.check_back();
}

BOOST_AUTO_TEST_SUITE_END()
