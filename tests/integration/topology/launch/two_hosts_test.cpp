// Goal: a prompt is answered by nodes of two hosts over the network between them, as by one
// process; and by two processes of one host at its address. Method: network namespaces as hosts,
// a cable of two virtual devices as network.
#include <signal.h>

#include <boost/test/unit_test.hpp>

#include "tests/integration/topology/launch/joining.hpp"
#include "tests/integration/topology/launch/network.hpp"
#include "tests/integration/topology/launch/serving_hosts.hpp"

using namespace cedar::test;
namespace ut = boost::unit_test;

namespace {

/// Front at the first host's address, node1 at `back`; data may go over `devices`.
void place(joining& here, const std::string& back, const std::string& devices) {
  std::string text =
      replaced(here.topology(), "node0: {address: 127.0.0.1}", "node0: {address: 10.77.0.1}");
  text = replaced(text, "node1: {address: 127.0.0.1", "node1: {address: " + back);
  text = replaced(text, "tls: [tcp, self]", "tls: [tcp, self], devices: [" + devices + "]");
  here.write_topology(replaced(text, "{secret_file", "{allow_remote: true, secret_file"));
}

std::vector<std::string> with_summary(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--summary"});
  return arguments;
}

void check_answer(program& client) {
  BOOST_REQUIRE_MESSAGE(client.wait_end(), client.errors());
  BOOST_TEST(client.code() == 0);
  BOOST_TEST(client.output() == joining::answer());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(two_hosts_of_a_topology, *ut::precondition(can_have_two_hosts))

BOOST_AUTO_TEST_CASE(answer_like_one_process) {
  const two_hosts hosts;
  joining here;
  place(here, "10.77.0.2", "cable0, cable1");
  program client(two_hosts::enter(), hosts.on(0, command(with_summary(here.run_arguments()))));
  const auto arguments = joining::node_arguments(client, "node1");
  BOOST_TEST(arguments.at(2).starts_with("10.77.0.1:"), arguments.at(2));
  program node(two_hosts::enter(), hosts.on(1, command(arguments)));
  check_answer(client);
  BOOST_TEST(contains(client.errors(), "tcp/cable0"), client.errors());
  BOOST_REQUIRE(node.wait_end());
  BOOST_TEST(node.code() == 0, node.errors());
}

BOOST_AUTO_TEST_CASE(lose_each_other_when_the_cable_is_cut) {
  const two_hosts hosts;
  joining here;
  place(here, "10.77.0.2", "cable0, cable1");
  program client(two_hosts::enter(), hosts.on(0, command(here.run_arguments(1900))));
  program node(two_hosts::enter(), hosts.on(1, command(joining::node_arguments(client, "node1"))));
  BOOST_REQUIRE(client.wait_output(" "));
  hosts.cut();
  BOOST_REQUIRE(client.wait_end());
  BOOST_TEST(client.code() == 1);
  BOOST_TEST(contains(client.errors(), "lost node 'node1'"), client.errors());
  BOOST_REQUIRE(node.wait_end());
  BOOST_TEST(node.code() == 1);
  BOOST_TEST(contains(node.errors(), "client 'node0': no heartbeat"), node.errors());
}

BOOST_AUTO_TEST_CASE(serve_again_when_the_cable_is_back) {
  const two_hosts hosts;
  joining here(2, small_chunks);
  place(here, "10.77.0.2", "cable0, cable1");
  program server(two_hosts::enter(), hosts.on(0, command(here.serve_arguments())));
  program node(two_hosts::enter(), hosts.on(1, rejoining(server, "node1")));
  const connector connect = connector_at(hosts, server);
  const std::string before = answer_of(connect);
  work_under_way work(connect);
  fault_watch watch(connect(), {"cedar_node_losses_total{node=\"node1\"}"});
  const auto fault = std::chrono::steady_clock::now();
  hosts.pull();
  const std::string name = "lost node 'node1' (stage 'stage1' layers 6-11, head)";
  const auto in_stream = work.check_named({name});
  const auto seen = watch.wait();
  BOOST_TEST(contains(seen.problem, name), seen.problem);
  BOOST_TEST(seen.counted);
  BOOST_TEST(server.wait_errors("the pipeline has failed: " + name), server.errors());
  tell_times("cable pulled", fault, in_stream, seen, std::chrono::steady_clock::now());
  BOOST_TEST(node.wait_errors("client 'node0': no heartbeat"), node.errors());
  hosts.plug();
  BOOST_REQUIRE_MESSAGE(server.wait_errors("serving again after "), server.errors());
  BOOST_TEST(answer_of(connect) == before);
  server.signal(SIGTERM);
  BOOST_REQUIRE(server.wait_end());
  BOOST_TEST(server.code() == 0, server.errors());
  BOOST_REQUIRE(node.wait_end());
  BOOST_TEST(node.code() == 0, node.errors());
}

BOOST_AUTO_TEST_CASE(at_one_address_are_two_processes) {
  const two_hosts hosts;
  for (const char* transports : {"tls: [tcp, self]", "tls: [posix, sysv, tcp, self]"}) {
    joining here(1);
    place(here, "10.77.0.1", "cable0");
    here.write_topology(replaced(here.topology(), "tls: [tcp, self]", transports));
    program client(two_hosts::enter(), hosts.on(0, command(with_summary(here.run_arguments()))));
    check_answer(client);
    BOOST_TEST(!contains(client.errors(), "tcp/lo"), client.errors());
  }
}

BOOST_AUTO_TEST_CASE(do_not_use_a_device_that_is_not_named) {
  const two_hosts hosts;
  joining here(1);
  place(here, "10.77.0.1", "cable1");
  const finished ran = run(two_hosts::enter(), hosts.on(0, command(here.run_arguments())));
  BOOST_TEST(ran.code == 1);
  BOOST_TEST(contains(ran.errors,
                      "data plane of node 'node0': 10.77.0.1:0 is an address of network "
                      "device 'cable0', which is not among those to use"),
             ran.errors);
}

BOOST_AUTO_TEST_CASE(do_not_wait_for_a_device_that_is_down) {
  const two_hosts hosts;
  joining here(1);
  place(here, "10.77.0.1", "cable0");
  hosts.pull();
  const finished ran = run(two_hosts::enter(), hosts.on(0, command(here.run_arguments())));
  BOOST_TEST(ran.code == 1);
  BOOST_TEST(contains(ran.errors, "'cable0' with the address of 10.77.0.1:0 is down"), ran.errors);
}

BOOST_AUTO_TEST_CASE(that_have_no_address_are_named) {
  const two_hosts hosts;
  joining here(1);
  place(here, "nowhere.invalid", "cable0");
  const finished ran = run(two_hosts::enter(), hosts.on(0, command(here.run_arguments())));
  BOOST_TEST(ran.code == 1);
  BOOST_TEST(contains(ran.errors, "node 'node1'"), ran.errors);
  BOOST_TEST(contains(ran.errors, "host 'nowhere.invalid' has no IPv4 address"), ran.errors);
}

BOOST_AUTO_TEST_SUITE_END()
