// Goal: a node that a person started stays: it comes back when its process dies and when its client
// does, and ends when it is told, or when a person has to put something right. Method: `cedar
// serve` and `cedar node --rejoin` on one host, and signals.
#include <signal.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/integration/topology/launch/joining.hpp"
#include "tests/integration/topology/launch/serving_hosts.hpp"

using namespace cedar::test;
namespace data = boost::unit_test::data;

namespace {

std::vector<std::string> rejoining(std::vector<std::string> arguments) {
  arguments.emplace_back("--rejoin");
  return arguments;
}

std::string answer_at(const std::string& port) {
  const auto number = static_cast<std::uint16_t>(std::stoul(port));
  return answer_of([number] { return std::make_unique<http_client>(number); });
}

void check_end(program& ended, int code) {
  BOOST_REQUIRE_MESSAGE(ended.wait_end(), ended.errors());
  BOOST_TEST(ended.code() == code, ended.errors());
  BOOST_TEST(ended.processes().empty());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rejoin)

BOOST_DATA_TEST_CASE(follows_the_end_of_the_nodes_process, data::make({SIGKILL, SIGSTOP}), number) {
  const joining here;
  program server(CEDAR_PROGRAM, here.serve_arguments());
  program node(CEDAR_PROGRAM, rejoining(joining::node_arguments(server, "node1")));
  const std::string port = port_of(server);
  const std::string before = answer_at(port);
  const auto lives = node.descendants();
  BOOST_REQUIRE_EQUAL(lives.size(), 1U);
  ::kill(lives[0], number);
  BOOST_REQUIRE(server.wait_errors("lost node 'node1' (stage 'stage1' layers 6-11, head)"));
  // A stopped one does not know yet that it has been given up.
  if (number == SIGSTOP) ::kill(lives[0], SIGCONT);
  BOOST_REQUIRE_MESSAGE(server.wait_errors("serving again after "), server.errors());
  BOOST_TEST(answer_at(port) == before);
  server.signal(SIGTERM);
  check_end(server, 0);
  check_end(node, 0);
}

BOOST_AUTO_TEST_CASE(waits_for_a_client_and_for_its_successor) {
  joining here;
  std::vector<std::string> arguments;
  {
    program client(CEDAR_PROGRAM, here.run_arguments());
    arguments = joining::node_arguments(client, "node1");
  }
  const std::string& at = arguments.at(2);
  here.write_topology(here.topology() + "control: {listen: \"127.0.0.1" + at.substr(at.rfind(':')) +
                      "\"}\n");
  program node(CEDAR_PROGRAM, rejoining(arguments));
  BOOST_REQUIRE(node.wait_errors("nobody listens there"));
  for (const int number : {SIGKILL, SIGTERM}) {
    program server(CEDAR_PROGRAM, here.serve_arguments());
    BOOST_TEST(!answer_at(port_of(server)).empty());
    server.signal(number);
    BOOST_REQUIRE(server.wait_end());
  }
  check_end(node, 0);
}

BOOST_DATA_TEST_CASE(has_no_limit_but_a_signal_ends_either_side, data::make({SIGTERM, SIGHUP}),
                     number) {
  const joining here;
  program server(CEDAR_PROGRAM, here.serve_arguments());
  program node(CEDAR_PROGRAM, rejoining(joining::node_arguments(server, "node1")));
  port_of(server);
  node.signal(number);
  check_end(node, 0);
  BOOST_REQUIRE(server.wait_errors("lost node 'node1'"));
  // It asks for the node again.
  BOOST_REQUIRE(
      server.wait_errors("bringing the pipeline back\ncedar: waiting for node 'node1': "));
  server.signal(number);
  check_end(server, 0);
}

BOOST_AUTO_TEST_CASE(ends_for_what_a_person_has_to_put_right) {
  const joining here;
  program server(CEDAR_PROGRAM, here.serve_arguments());
  const auto arguments = rejoining(joining::node_arguments(server, "node1"));
  const auto refused = [&](const std::string& option, const std::string& value,
                           const std::string& why) {
    const finished ran = run(CEDAR_PROGRAM, with_option(arguments, option, value));
    BOOST_TEST(ran.code == 1);
    BOOST_TEST(contains(ran.errors, why), ran.errors);
  };
  refused("--name", "node7", "the topology expects no node 'node7'");
  refused("--secret", here.secret('x').string(), "node 'node1' does not know the secret");
  refused("--secret", "/nowhere/secret", "/nowhere/secret");
}

BOOST_AUTO_TEST_SUITE_END()
