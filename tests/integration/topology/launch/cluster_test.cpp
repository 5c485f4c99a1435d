// Goal: a cluster maps what is placed and nothing else, uses every edge it declared, costs next to
// nothing while idle, and survives a wrong request. Method: a cluster of this process and its
// children, its reports, and the processor time they use.
#include "topology/launch/cluster.hpp"

#include <unistd.h>
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <thread>

#include "runtime/model/manifest.hpp"
#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

struct started_cluster {
  explicit started_cluster(const topology_options& topology = {}, std::uint64_t trace_events = 0,
                           const std::string& model = "cedar-tiny") {
    topology::cluster_options options;
    options.topology = folder.write("t.yaml", topology_text(topology));
    options.model = checkpoint_of(model);
    options.program = CEDAR_PROGRAM;
    options.trace_events_max = trace_events;
    cluster = std::make_unique<topology::cluster>(options);
    const result<void> started = cluster->start();
    BOOST_REQUIRE_MESSAGE(started.has_value(), (started ? "" : started.error().message));
  }

  /// Answers `prompt` with `count` tokens.
  result<std::vector<token_id>> tokens(const std::vector<token_id>& prompt, std::uint32_t count) {
    session::generation_request request;
    request.prompt = prompt;
    request.new_tokens_max = count;
    request.ignore_eos = true;
    std::vector<token_id> out;
    session::generation_sink sink;
    sink.on_row = [&](std::size_t, const session::row_event& row) { out.push_back(row.token); };
    const auto used = cluster->generate({request}, sink);
    if (!used) return fail(used.error());
    return out;
  }

  temporary_folder folder;
  std::unique_ptr<topology::cluster> cluster;
};

const std::vector<token_id> hello{0, 100, 200, 300};

const topology::node_report& report_of(const std::vector<topology::node_report>& all,
                                       const std::string& node) {
  const auto found = std::ranges::find(all, node, &topology::node_report::node);
  BOOST_REQUIRE(found != all.end());
  return *found;
}

/// Tensors of layers [first, last], Engram's included.
std::set<std::string> layer_tensors(const store::checkpoint& checkpoint, std::uint32_t first,
                                    std::uint32_t last) {
  std::set<std::string> out;
  for (std::uint32_t layer = first; layer <= last; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    for (const store::tensor_info& tensor : checkpoint.tensors())
      if (tensor.name.starts_with(prefix)) out.insert(tensor.name);
  }
  return out;
}

std::chrono::nanoseconds cpu_time_of_all() {
  std::chrono::nanoseconds sum = cpu_time_of(::getpid());
  for (const pid_t child : children_of(::getpid())) sum += cpu_time_of(child);
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cluster)

BOOST_AUTO_TEST_CASE(maps_the_tensors_of_each_nodes_units_and_no_others) {
  started_cluster here;
  // The tables of Engram are mapped row by row, when a step asks for them.
  BOOST_REQUIRE(here.tokens(hello, 3).has_value());
  const auto reports = here.cluster->reports();
  BOOST_TEST_REQUIRE(reports.size() == 2U);
  const store::checkpoint& checkpoint = here.cluster->model().checkpoint();

  std::set<std::string> front = layer_tensors(checkpoint, 0, 5);
  front.insert("embed.weight");
  std::set<std::string> back = layer_tensors(checkpoint, 6, 11);
  back.insert({"norm.weight", "head.weight"});
  BOOST_TEST(front.size() + back.size() > 900U);
  const auto& at_front = report_of(reports, "node0").tensors;
  const auto& at_back = report_of(reports, "node1").tensors;
  BOOST_TEST(std::set<std::string>(at_front.begin(), at_front.end()) == front,
             boost::test_tools::per_element());
  BOOST_TEST(std::set<std::string>(at_back.begin(), at_back.end()) == back,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(maps_the_tower_where_vision_is_placed_and_asks_it_for_images_only) {
  started_cluster here({.vision = "eye"}, 10'000, "tiny-vision");
  BOOST_REQUIRE(here.tokens(hello, 3).has_value());
  const auto reports = here.cluster->reports();
  BOOST_TEST_REQUIRE(reports.size() == 3U);
  std::set<std::string> tower;
  for (const model::expected_tensor& tensor : model::manifest(here.cluster->model().config()))
    if (tensor.part == model::component::vision) tower.insert(tensor.name);
  const auto& at_eye = report_of(reports, "eye").tensors;
  BOOST_TEST(std::set<std::string>(at_eye.begin(), at_eye.end()) == tower,
             boost::test_tools::per_element());
  for (const char* other : {"node0", "node1"})
    for (const std::string& name : report_of(reports, other).tensors)
      BOOST_TEST(!tower.contains(name), other << " maps " << name);

  std::map<std::string, std::size_t> messages;
  for (const topology::node_report& report : reports)
    for (const topology::traced& event : report.events)
      if (event.kind == static_cast<std::uint8_t>(trace_kind::message)) ++messages[event.track];
  BOOST_TEST(messages["scheduler -> vision step_table"] == 3U);
  BOOST_TEST(messages["scheduler -> vision verdict"] == 3U);
  BOOST_TEST(messages["scheduler -> vision image"] == 0U);
  BOOST_TEST(messages["vision -> embedding image_rows"] == 0U);
}

BOOST_AUTO_TEST_CASE(sends_on_every_edge_it_declared) {
  started_cluster here({}, 10'000);
  BOOST_REQUIRE(here.tokens(hello, 7).has_value());
  std::map<std::string, std::size_t> messages;
  for (const topology::node_report& report : here.cluster->reports()) {
    for (const topology::traced& event : report.events)
      if (event.kind == static_cast<std::uint8_t>(trace_kind::message)) ++messages[event.track];
    BOOST_TEST_REQUIRE(report.links.size() == 1U);
    BOOST_TEST(report.links.at(0).transport == "tcp/lo");
    BOOST_TEST(report.links.at(0).frames_sent >= 7U);
  }
  for (const topology::edge_plan& edge : here.cluster->topology().edges())
    BOOST_TEST(messages[edge.name] == (edge.kind == topology::edge_kind::tap ? 0U : 7U), edge.name);
}

BOOST_AUTO_TEST_CASE(costs_next_to_nothing_while_it_is_idle) {
  started_cluster here;
  BOOST_REQUIRE(here.tokens(hello, 2).has_value());
  BOOST_TEST_REQUIRE(children_of(::getpid()).size() == 1U);
  const auto begin = std::chrono::steady_clock::now();
  const auto before = cpu_time_of_all();
  std::this_thread::sleep_for(3s);
  const std::chrono::duration<double> used = cpu_time_of_all() - before;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  const double percent = 100 * used.count() / passed.count();
  BOOST_TEST_MESSAGE("idle: " << percent << " % of a core over all processes (promised: 2)");
  BOOST_TEST(percent < 10);
}

BOOST_AUTO_TEST_CASE(answers_again_and_after_a_wrong_request) {
  started_cluster here;
  const auto first = here.tokens(hello, 5);
  BOOST_REQUIRE(first.has_value());
  const auto wrong = here.tokens({0, 999'999}, 5);
  BOOST_REQUIRE(!wrong.has_value());
  BOOST_TEST((wrong.error().code == errc::invalid_argument));
  const auto second = here.tokens(hello, 5);
  BOOST_REQUIRE(second.has_value());
  BOOST_TEST(*first == *second, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(takes_more_requests_than_its_queue_holds) {
  topology_options topology;
  topology.more = "limits: {requests: 2}";
  started_cluster here(topology);
  // 64 for each of the two that run at a time may wait.
  std::vector<session::generation_request> requests(300);
  for (std::size_t i = 0; i < requests.size(); ++i)
    requests[i].prompt = {0, static_cast<token_id>(i)};
  std::vector<std::size_t> rows(requests.size());
  session::generation_sink sink;
  sink.on_row = [&](std::size_t index, const session::row_event&) { ++rows.at(index); };
  const auto used = here.cluster->generate(requests, sink);
  BOOST_REQUIRE(used.has_value());
  BOOST_TEST(used->size() == requests.size());
  BOOST_TEST(rows == std::vector<std::size_t>(requests.size(), 1),
             boost::test_tools::per_element());
  // What is wrong with the last of many is told before the first is run.
  requests.back().prompt = {-1};
  rows.assign(rows.size(), 0);
  const auto wrong = here.cluster->generate(requests, sink);
  BOOST_REQUIRE(!wrong.has_value());
  BOOST_TEST(contains(wrong.error().message, "request 300"), wrong.error().message);
  BOOST_TEST(rows.front() == 0U);
}

BOOST_AUTO_TEST_CASE(that_was_interrupted_answers_no_more) {
  started_cluster here;
  here.cluster->interrupt();
  for (int i = 0; i < 2; ++i) {
    const auto answer = here.tokens(hello, 1000);
    BOOST_REQUIRE(!answer.has_value());
    BOOST_TEST((answer.error().code == errc::cancelled));
  }
  here.cluster->stop();
  BOOST_TEST(children_of(::getpid()).empty());
}

BOOST_AUTO_TEST_CASE(ends_its_processes_when_it_stops) {
  started_cluster here({.cuts = {3, 5}});
  BOOST_TEST(here.cluster->processes() == 2U);
  BOOST_TEST(children_of(::getpid()).size() == 2U);
  const auto begin = std::chrono::steady_clock::now();
  here.cluster->stop();
  BOOST_TEST(children_of(::getpid()).empty());
  // In good order, that is: before the drain deadline of 5 s.
  BOOST_TEST((std::chrono::steady_clock::now() - begin < 5s));
}

BOOST_AUTO_TEST_CASE(of_one_process_starts_no_other) {
  started_cluster here({.cuts = {}});
  BOOST_TEST(here.cluster->processes() == 0U);
  started_cluster there;
  const auto alone = here.tokens(hello, 9);
  const auto cut = there.tokens(hello, 9);
  BOOST_REQUIRE(alone.has_value() && cut.has_value());
  BOOST_TEST(*alone == *cut, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(that_cannot_start_its_nodes_says_so) {
  temporary_folder folder;
  topology::cluster_options options;
  options.topology = folder.write("t.yaml", topology_text({}));
  options.model = checkpoint_of("cedar-tiny");
  for (const char* program : {"/nowhere/cedar", "/bin/false"}) {
    options.program = program;
    topology::cluster broken(options);
    const result<void> started = broken.start();
    BOOST_REQUIRE(!started.has_value());
    BOOST_TEST(contains(started.error().message, "node 'node1'"), started.error().message);
    BOOST_TEST(children_of(::getpid()).empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()
