// Goal: whichever process of a server dies or stops, whenever it does, the answers that it held end
// with an error that names it, and the server serves again without restarting the others. Method:
// servers of two and three processes over UCX, signals to those behind; the same prompt before and
// after.
#include <signal.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <sstream>

#include "tests/integration/tools/serve/fault_watch.hpp"
#include "tests/integration/tools/serve/faults.hpp"

using namespace cedar::test;
using nlohmann::json;

namespace {

const std::vector<victim> victims{{2, "node1", "stage1", SIGKILL}, {2, "node1", "stage1", SIGSTOP},
                                  {3, "node1", "stage1", SIGKILL}, {3, "node1", "stage1", SIGSTOP},
                                  {3, "node2", "stage2", SIGKILL}, {3, "node2", "stage2", SIGSTOP}};

}  // namespace

BOOST_AUTO_TEST_SUITE(serve_faults)

BOOST_DATA_TEST_CASE(of_a_process_while_it_answers_are_named_and_pass,
                     boost::unit_test::data::make(victims), lost) {
  server one({}, processes(lost.processes));
  json ask = greedy("The fox", 40);
  ask["temperature"] = 1.1;
  ask["seed"] = 5;
  const std::string before = one.completion(ask);
  const auto pids = pids_of_nodes(one);

  http_client client(one.port);
  client.send("POST", "/v1/completions", endless().dump());
  client.wait_for("data: ");
  fault_watch watch(std::make_unique<http_client>(one.port), {lost.losses()});
  const auto begin = std::chrono::steady_clock::now();
  ::kill(pids.at(lost.node), lost.signal);
  const auto events = events_of(client.receive().body);
  const auto in_stream = std::chrono::steady_clock::now();
  BOOST_TEST((in_stream - begin < named_within));
  const std::string text = json::parse(events.back()).at("error").at("message");
  // In a pipeline of three, a neighbour may be the first to notice.
  BOOST_TEST(contains(text, lost.name()), text);
  const auto seen = watch.wait();
  BOOST_TEST(contains(seen.problem, lost.name()), seen.problem);
  BOOST_TEST(seen.counted);
  BOOST_TEST(one.process.wait_errors(lost.name()), one.process.errors());
  std::ostringstream what;
  what << lost;
  tell_times(what.str(), begin, in_stream, seen, std::chrono::steady_clock::now());
  BOOST_TEST(one.get("/health").status == 200);

  wait_ready(one);
  BOOST_TEST(one.completion(ask) == before);
  for (const auto& [node, pid] : pids)
    BOOST_TEST((pid_of(one, node) == pid) == (node != lost.node), node);
  BOOST_TEST(one.metric(lost.losses()) == 1);
  BOOST_TEST(one.metric("cedar_recoveries_total") >= 1);
  BOOST_TEST(one.wait_metric("cedar_scheduler_requests_running", 0));
  BOOST_TEST(one.wait_metric("cedar_kv_positions", 0));
  stop(one);
  BOOST_TEST(contains(one.process.errors(), "serving again after "), one.process.errors());
}

// A successor is watched like its predecessor.
BOOST_AUTO_TEST_CASE(again_are_noticed_as_soon) {
  server one;
  const std::string before = one.completion(greedy("The fox", 12));
  pid_t node = pid_of(one, "node1");
  for (const int number : {SIGKILL, SIGSTOP, SIGSTOP}) {
    http_client client(one.port);
    client.send("POST", "/v1/completions", endless().dump());
    client.wait_for("data: ");
    const auto begin = std::chrono::steady_clock::now();
    ::kill(node, number);
    const auto events = events_of(client.receive().body);
    BOOST_TEST((std::chrono::steady_clock::now() - begin < named_within));
    const std::string text = json::parse(events.back()).at("error").at("message");
    BOOST_TEST(contains(text, "node 'node1'"), text);
    node = successor_of(one, "node1", node);
    wait_ready(one);
    BOOST_TEST(one.completion(greedy("The fox", 12)) == before);
  }
  stop(one);
}

BOOST_AUTO_TEST_CASE(in_prefill_are_named_too) {
  server one;
  const std::string before = one.completion(greedy("The fox", 12));
  json ask = greedy("", 4);
  ask["prompt"] = std::vector<int>(1900, 50);
  http_client client(one.port);
  client.send("POST", "/v1/completions", ask.dump());
  BOOST_REQUIRE(one.wait_metric("cedar_scheduler_requests_running", 1));
  ::kill(pid_of(one, "node1"), SIGKILL);
  const http_reply reply = client.receive();
  BOOST_TEST(reply.status == 503);
  BOOST_TEST(contains(reply.body, "lost node 'node1' (stage 'stage1'"), reply.body);
  BOOST_TEST(!reply.headers.at("retry-after").empty());
  wait_ready(one);
  BOOST_TEST(one.completion(greedy("The fox", 12)) == before);
  stop(one);
}

BOOST_AUTO_TEST_CASE(spare_requests_that_only_waited) {
  topology_options topology;
  topology.more = "limits: {requests: 1}";
  server one({}, topology);
  const std::string alone = one.completion(greedy("The fox", 12));
  http_client running(one.port);
  running.send("POST", "/v1/completions", endless().dump());
  running.wait_for("data: ");
  http_client waiting(one.port);
  waiting.send("POST", "/v1/completions", greedy("The fox", 12).dump());
  BOOST_REQUIRE(one.wait_metric("cedar_scheduler_requests_waiting", 1));
  ::kill(pid_of(one, "node1"), SIGKILL);
  BOOST_TEST(contains(running.receive().body, "lost node 'node1'"));
  const http_reply reply = waiting.receive();
  BOOST_TEST(reply.status == 200);
  BOOST_TEST(json::parse(reply.body).at("choices").at(0).at("text") == alone);
  stop(one);
}

BOOST_AUTO_TEST_CASE(of_two_processes_at_once_pass) {
  server one({}, processes(3));
  const std::string before = one.completion(greedy("The fox", 12));
  const pid_t first = pid_of(one, "node1");
  const pid_t second = pid_of(one, "node2");
  ::kill(first, SIGKILL);
  ::kill(second, SIGSTOP);
  successor_of(one, "node1", first);
  successor_of(one, "node2", second);
  wait_ready(one);
  BOOST_TEST(one.completion(greedy("The fox", 12)) == before);
  // A busy machine may lose a successor, too.
  BOOST_TEST(one.metric("cedar_node_losses_total{node=\"node1\"}") >= 1);
  BOOST_TEST(one.metric("cedar_node_losses_total{node=\"node2\"}") >= 1);
  stop(one);
}

BOOST_AUTO_TEST_CASE(while_it_comes_back_pass) {
  topology_options topology = processes(3);
  topology.more = "deadlines_ms: {start: 5000}";  // for a process that stops before it joins
  server one({}, topology);
  const std::string before = one.completion(greedy("The fox", 12));
  pid_t victim = pid_of(one, "node2");
  ::kill(victim, SIGKILL);
  for (const int signal : {SIGKILL, SIGSTOP, SIGKILL}) {
    victim = successor_of(one, "node2", victim);
    ::kill(victim, signal);
  }
  ::kill(pid_of(one, "node1"), SIGKILL);
  successor_of(one, "node2", victim);
  wait_ready(one);
  BOOST_TEST(one.completion(greedy("The fox", 12)) == before);
  stop(one);
}

BOOST_AUTO_TEST_CASE(that_last_are_met_with_longer_and_longer_pauses) {
  const temporary_folder folder;
  const auto model = folder.path() / "cedar-tiny";
  const auto elsewhere = folder.path() / "elsewhere";
  std::filesystem::copy(checkpoint_of("cedar-tiny"), model,
                        std::filesystem::copy_options::recursive);
  server one({}, topology_options{}, model);
  const std::string before = one.completion(greedy("The fox", 12));
  std::filesystem::rename(model, elsewhere);  // no successor finds its weights
  const auto begin = std::chrono::steady_clock::now();
  ::kill(pid_of(one, "node1"), SIGKILL);
  const std::string attempt = "bringing the pipeline back\n";
  const auto count = [&] {
    std::size_t out = 0;
    for (std::size_t at = 0; (at = one.process.errors().find(attempt, at)) != std::string::npos;
         ++at)
      ++out;
    return out;
  };
  const auto limit = begin + patience;
  while (count() < 5 && std::chrono::steady_clock::now() < limit && !one.process.wait_end(10ms))
    continue;
  BOOST_TEST(count() >= 5U, one.process.errors());
  // Before the second to the fifth: 0.1, 0.2, 0.4 and 0.8 s.
  BOOST_TEST((std::chrono::steady_clock::now() - begin >= 1500ms));
  const std::string problem = one.get("/ready").body;
  BOOST_TEST(contains(problem, "lost node 'node1'"), problem);
  BOOST_TEST(contains(problem, "; not back yet: node 'node1': "), problem);
  std::filesystem::rename(elsewhere, model);
  wait_ready(one);
  BOOST_TEST(one.completion(greedy("The fox", 12)) == before);
  stop(one);
}

BOOST_AUTO_TEST_CASE(do_not_keep_a_server_from_ending) {
  server one;
  pid_t victim = pid_of(one, "node1");
  ::kill(victim, SIGKILL);
  // Until it pauses for longer than a process takes to start.
  for (int i = 0; i < 4; ++i) {
    victim = successor_of(one, "node1", victim);
    ::kill(victim, SIGKILL);
  }
  const http_reply ready = one.get("/ready");
  BOOST_TEST(ready.status == 503);
  BOOST_TEST(contains(ready.body, "lost node 'node1'"), ready.body);
  BOOST_TEST(one.metric("cedar_unit_up{node=\"node1\",unit=\"stage1\"}") == 0);
  BOOST_TEST(one.metric("cedar_unit_up{node=\"node0\",unit=\"stage0\"}") == 1);
  const http_reply refused = one.post("/v1/completions", greedy("A fox", 4));
  BOOST_TEST(refused.status == 503);
  BOOST_TEST(contains(refused.body, "lost node 'node1'"), refused.body);
  BOOST_TEST(!refused.headers.at("retry-after").empty());
  stop(one);
}

BOOST_AUTO_TEST_SUITE_END()
