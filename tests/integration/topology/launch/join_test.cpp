// Goal: nodes that a person starts work like those that the client spawns; whoever may not join is
// turned away by name on both sides and harms nobody; whoever is alone in the end says so and ends.
// Method: `cedar run` and the `cedar node` commands that it prints, on one host.
#include <signal.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <caf/io/all.hpp>
#include <chrono>

#include "actors/error_bridge.hpp"
#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/tools/serve/http_client.hpp"
#include "tests/integration/topology/launch/joining.hpp"
#include "topology/launch/control.hpp"

using namespace cedar;
using namespace cedar::test;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

namespace {

void check_code(program& ended, int code, const std::string& said) {
  BOOST_REQUIRE_MESSAGE(ended.wait_end(), "still runs; said " << ended.errors());
  BOOST_TEST(ended.code() == code);
  BOOST_TEST(contains(ended.errors(), said), ended.errors());
}

/// Ran, was refused with `why`, and answered nothing.
void check_refused(const finished& node, const std::string& why) {
  BOOST_TEST(node.code == 1);
  BOOST_TEST(contains(node.errors, why), node.errors);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(join)

BOOST_AUTO_TEST_CASE(answers_like_one_process) {
  const joining here;
  program client(CEDAR_PROGRAM, here.run_arguments());
  program node(CEDAR_PROGRAM, joining::node_arguments(client, "node1"));
  check_code(client, 0, "");
  BOOST_TEST(client.output() == joining::answer());
  check_code(node, 0, "");
  BOOST_TEST(node.errors() == "");
  BOOST_TEST(contains(node.output(), "told to stop"), node.output());
}

BOOST_AUTO_TEST_CASE(takes_the_time_of_emulated_links) {
  const joining here(2, "links: [{between: [node0, node1], latency_ms: 40}]\n");
  std::vector<std::string> arguments = here.serve_arguments();
  arguments.emplace_back("--emulate-links");
  program server(CEDAR_PROGRAM, arguments);
  program node(CEDAR_PROGRAM, joining::node_arguments(server, "node1"));
  const auto port = static_cast<std::uint16_t>(std::stoul(port_of(server)));
  const auto begin = std::chrono::steady_clock::now();
  const http_reply reply = exchange(
      port, "POST", "/v1/completions",
      R"({"model": "cedar-tiny", "prompt": "The fox", "max_tokens": 6, "ignore_eos": true})");
  const auto took = std::chrono::steady_clock::now() - begin;
  BOOST_TEST(reply.status == 200, reply.body);
  // Every token goes there by the client's word, and back by that of the node that joined.
  BOOST_TEST((took >= 6 * 80ms));
}

BOOST_AUTO_TEST_CASE(of_some_nodes_goes_with_spawning_others) {
  joining here(3);
  here.write_topology(replaced(here.topology(), ", start: join", ", start: spawn"));
  program client(CEDAR_PROGRAM, here.run_arguments());
  program node(CEDAR_PROGRAM, joining::node_arguments(client, "node2"));
  check_code(client, 0, "");
  BOOST_TEST(!contains(client.errors(), "waiting for node 'node1'"), client.errors());
  BOOST_TEST(client.output() == joining::answer());
  check_code(node, 0, "");
}

BOOST_AUTO_TEST_CASE(happens_where_the_topology_says) {
  joining here;
  const auto port_of = [](const std::vector<std::string>& arguments) {
    const std::string& at = arguments.at(2);
    return at.substr(at.rfind(':') + 1);
  };
  std::string port;
  {
    program client(CEDAR_PROGRAM, here.run_arguments());
    port = port_of(joining::node_arguments(client, "node1"));
  }
  here.write_topology(here.topology() + "control: {listen: \"localhost:" + port + "\"}\n");
  program client(CEDAR_PROGRAM, here.run_arguments());
  const auto arguments = joining::node_arguments(client, "node1");
  BOOST_TEST(arguments.at(2) == "localhost:" + port);
  // A second client finds the place taken.
  const finished second = run(CEDAR_PROGRAM, here.run_arguments());
  BOOST_TEST(second.code == 1);
  BOOST_TEST(contains(second.errors, "control plane at localhost:" + port), second.errors);
  program node(CEDAR_PROGRAM, arguments);
  check_code(client, 0, "");
  check_code(node, 0, "");
}

BOOST_AUTO_TEST_CASE(with_a_checkpoint_at_a_path_of_its_own) {
  joining here;
  here.write_topology(
      replaced(here.topology(), "start: join", "start: join, model_path: /not/here"));
  program client(CEDAR_PROGRAM, here.run_arguments());
  auto arguments = joining::node_arguments(client, "node1");
  arguments.insert(arguments.end(), {"--model", checkpoint_of("cedar-tiny").string()});
  program node(CEDAR_PROGRAM, arguments);
  check_code(client, 0, "");
  check_code(node, 0, "");
}

BOOST_AUTO_TEST_CASE(with_another_checkpoint_is_refused_on_both_sides) {
  const joining here;
  const auto copy = here.folder() / "model";
  std::filesystem::copy(checkpoint_of("cedar-tiny"), copy,
                        std::filesystem::copy_options::recursive);
  std::string bytes = read_file(copy / "model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(copy / "model.safetensors", std::ios::binary) << bytes;
  program client(CEDAR_PROGRAM, here.run_arguments());
  auto arguments = joining::node_arguments(client, "node1");
  arguments.insert(arguments.end(), {"--model", copy.string()});
  program node(CEDAR_PROGRAM, arguments);
  const std::string why = "the checkpoint at " + copy.string() + " is not the client's";
  check_code(client, 1, "node 'node1': " + why);
  BOOST_TEST(client.output() == "");
  check_code(node, 1, why);
}

BOOST_AUTO_TEST_CASE(turns_strangers_away_and_waits_on) {
  const joining here(3);
  program client(CEDAR_PROGRAM, here.run_arguments());
  const auto arguments = joining::node_arguments(client, "node1");
  std::string why = "the topology expects no node 'node7'";
  check_refused(run(CEDAR_PROGRAM, with_option(arguments, "--name", "node7")), why);
  BOOST_TEST(client.wait_errors("turned away: " + why), client.errors());
  why = "node 'node1' does not know the secret";
  check_refused(run(CEDAR_PROGRAM, with_option(arguments, "--secret", here.secret('x').string())),
                why);
  BOOST_TEST(client.wait_errors("turned away: " + why), client.errors());
  program first(CEDAR_PROGRAM, arguments);
  BOOST_REQUIRE(first.wait_output("joined"));
  why = "node 'node1' has joined already";
  check_refused(run(CEDAR_PROGRAM, arguments), why);
  BOOST_TEST(client.wait_errors("turned away: " + why), client.errors());
  program second(CEDAR_PROGRAM, joining::node_arguments(client, "node2"));
  check_code(client, 0, "");
  BOOST_TEST(client.output() == joining::answer());
  check_code(first, 0, "");
  check_code(second, 0, "");
}

BOOST_AUTO_TEST_CASE(of_another_version_is_told_to_the_client) {
  const joining here(2, "deadlines_ms: {start: 3000}\n");
  program client(CEDAR_PROGRAM, here.run_arguments());
  const std::string at = joining::node_arguments(client, "node1").at(2);
  topology::system_config config(true);
  caf::actor_system system(config);
  {
    const auto controller = system.middleman().remote_actor<topology::controller_actor>(
        "127.0.0.1", static_cast<std::uint16_t>(std::stoul(at.substr(at.rfind(':') + 1))));
    BOOST_REQUIRE(static_cast<bool>(controller));
    std::vector<std::string> identity = topology::program_identity();
    identity.front() = "cedar 99";
    const caf::scoped_actor self{system};
    error got;
    self->request(*controller, patience, topology::hello_atom::value, std::string("node1"),
                  identity)
        .receive([](const std::string&) {},
                 [&](const caf::error& what) { got = actors::from_caf(system, what); });
    BOOST_TEST((got.code == errc::refused));
    BOOST_TEST(contains(got.message, "node 'node1' has cedar 99, the client has cedar "),
               got.message);
  }
  check_code(client, 1,
             "node 'node1' did not join within 3000 ms (deadlines_ms.start); turned "
             "away: node 'node1' has cedar 99, the client has cedar ");
  BOOST_TEST(client.output() == "");
}

BOOST_AUTO_TEST_CASE(that_nobody_does_ends_with_what_to_run) {
  const joining here(3, "deadlines_ms: {start: 500}\n");
  program client(CEDAR_PROGRAM, here.run_arguments());
  std::string commands;
  for (const std::string name : {"node1", "node2"}) {
    commands += "\n  run on its host: cedar";
    for (const std::string& word : joining::node_arguments(client, name)) commands += " " + word;
  }
  check_code(client, 1, "node 'node1', node 'node2' did not join within 500 ms");
  BOOST_TEST(contains(client.errors(), "(deadlines_ms.start)" + commands), client.errors());
}

BOOST_DATA_TEST_CASE(ends_with_the_client, data::make({SIGKILL, SIGINT, SIGSTOP}), number) {
  const joining here;
  program client(CEDAR_PROGRAM, here.run_arguments(1900));
  program node(CEDAR_PROGRAM, joining::node_arguments(client, "node1"));
  BOOST_REQUIRE(client.wait_output(" "));
  client.signal(number);
  if (number == SIGINT)
    check_code(node, 0, "");
  else  // Killed, its control connection may break first, and its data plane may.
    check_code(node, 1, number == SIGKILL ? "client" : "client 'node0': no heartbeat");
}

BOOST_DATA_TEST_CASE(ends_with_a_client_that_still_waits, data::make({SIGKILL, SIGINT}), number) {
  const joining here(3);
  program client(CEDAR_PROGRAM, here.run_arguments());
  program node(CEDAR_PROGRAM, joining::node_arguments(client, "node1"));
  BOOST_REQUIRE(node.wait_output("joined"));
  client.signal(number);
  if (number == SIGINT)
    check_code(node, 0, "");
  else
    check_code(node, 1, "the client is gone");
}

BOOST_DATA_TEST_CASE(is_over_when_the_node_ends, data::make({false, true}), answering) {
  const joining here(answering ? 2 : 3);
  program client(CEDAR_PROGRAM, here.run_arguments(1900));
  program node(CEDAR_PROGRAM, joining::node_arguments(client, "node1"));
  if (answering)
    BOOST_REQUIRE(client.wait_output(" "));
  else
    BOOST_REQUIRE(node.wait_output("joined"));
  node.signal(SIGINT);
  check_code(client, 1,
             answering ? "lost node 'node1' (stage 'stage1' layers 6-11, head)"
                       : "node 'node1' ended while starting");
}

BOOST_AUTO_TEST_SUITE_END()
