// Goal: --emulate-links makes a topology as slow as its links and changes no bit; a link that is
// too bad loses its node by name. Method: the program over links with numbers of which time has a
// lower bound on any machine.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"

using namespace cedar::test;
using nlohmann::json;

namespace {

const std::string tiny = checkpoint_of("cedar-tiny").string();

/// A file of two nodes, node0 and node1, linked so.
struct linked {
  explicit linked(const std::string& numbers, bool loopback = false) {
    topology_options options;
    options.loopback = loopback;
    if (!numbers.empty()) options.more = "links: [{between: [node0, node1], " + numbers + "}]";
    file = folder.write("t.yaml", topology_text(options)).string();
  }

  finished command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"-m", tiny, "--topology", file, "--emulate-links"});
    return run(CEDAR_PROGRAM, arguments);
  }

  temporary_folder folder;
  std::string file;
};

const std::vector<std::string> six_tokens{"run", "-p", "Once upon a time", "--max-tokens", "6"};

}  // namespace

BOOST_AUTO_TEST_SUITE(emulated_links)

BOOST_AUTO_TEST_CASE(change_no_bit) {
  // A few of some hundred frames are lost; and jitter would put half of them out of order.
  const linked nodes("latency_ms: 1, jitter_ms: 4, bandwidth_mbps: 100, loss: 0.02");
  const golden_prompt prompt = golden_prompt_of("cedar-tiny", "story-text");
  const auto alone = nodes.folder.path() / "alone.safetensors";
  const auto apart = nodes.folder.path() / "apart.safetensors";
  const auto done = run(CEDAR_PROGRAM, logits_arguments(nodes.folder, prompt, tiny, alone));
  BOOST_REQUIRE_MESSAGE(done.code == 0, done.errors);
  std::vector<std::string> arguments = logits_arguments(nodes.folder, prompt, tiny, apart);
  arguments.insert(arguments.end(), {"--topology", nodes.file, "--emulate-links"});
  const finished ran = run(CEDAR_PROGRAM, arguments);
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
  BOOST_TEST(ran.errors ==
             "cedar: emulating links: node0 <-> node1 1 ms, 100 Mbit/s, jitter 4 ms, loss 2 %\n");
  BOOST_TEST(check_same_tensors(apart, alone) >= 4U);
}

BOOST_AUTO_TEST_CASE(make_a_token_wait_for_the_latency_there_and_back) {
  const linked nodes("latency_ms: 40");
  const finished ran = nodes.command(
      {"bench", "pipeline", "--tokens", "6", "--prompt-tokens", "5", "--repeat", "1", "--json"});
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
  const json seen = json::parse(ran.output);
  BOOST_TEST(seen.at("same_tokens") == true);
  BOOST_TEST(seen.at("emulated_links") == true);
  for (const char* time : {"first_token_us", "time_per_token_us"})
    BOOST_TEST(seen.at("through_topology").at(time).get<double>() >= 80'000, time);
}

BOOST_AUTO_TEST_CASE(make_a_prompt_wait_for_the_bandwidth) {
  // 4 rows of activation, 1,041 bytes each, take 0.83 s over 40 kbit/s.
  const linked nodes("bandwidth_mbps: 0.04");
  const finished ran = nodes.command(
      {"bench", "pipeline", "--tokens", "2", "--prompt-tokens", "4", "--repeat", "1", "--json"});
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
  const json seen = json::parse(ran.output);
  BOOST_TEST(seen.at("through_topology").at("first_token_us").get<double>() >=
             1e6 * 4 * 1041 * 8 / 40'000);
}

BOOST_AUTO_TEST_CASE(stand_in_the_summary_also_within_a_process) {
  for (const bool loopback : {false, true}) {
    std::vector<std::string> arguments = six_tokens;
    arguments.emplace_back("--summary");
    const finished ran = linked("latency_ms: 3", loopback).command(arguments);
    BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
    const std::string carried = loopback ? "loopback" : "tcp/lo";
    for (const std::string ends : {"node0 -> node1", "node1 -> node0"})
      BOOST_TEST(contains(ran.errors, ends + ": " + carried + ", emulated: 3 ms, "), ran.errors);
  }
}

BOOST_AUTO_TEST_CASE(that_lose_everything_lose_the_node_by_name) {
  const finished ran = linked("loss: 1").command(six_tokens);
  BOOST_TEST(ran.code == 1);
  BOOST_TEST(ran.output == "");
  BOOST_TEST(contains(ran.errors, "lost a packet 6 times in a row"), ran.errors);
  BOOST_TEST(contains(ran.errors, "node 'node1'"), ran.errors);
}

BOOST_AUTO_TEST_CASE(need_links_in_the_file_and_a_topology) {
  const finished none = linked("").command(six_tokens);
  BOOST_TEST(none.code == 1);
  BOOST_TEST(contains(none.errors,
                      "t.yaml declares no links to emulate; write links: [{between: "
                      "[NODE, NODE], latency_ms: 20}], or leave --emulate-links out"),
             none.errors);
  std::vector<std::string> arguments = six_tokens;
  arguments.insert(arguments.end(), {"-m", tiny, "--emulate-links"});
  const finished alone = run(CEDAR_PROGRAM, arguments);
  BOOST_TEST(alone.code == 2);
  BOOST_TEST(contains(alone.errors, "--topology"), alone.errors);
}

BOOST_AUTO_TEST_SUITE_END()
