// Goal: a server whose topology places a drafter says what it said without, tells what drafting was
// worth, and names the drafter's process when it is lost. Method: servers of two and three
// processes.
#include <signal.h>

#include <boost/test/unit_test.hpp>

#include "tests/integration/tools/serve/fault_watch.hpp"
#include "tests/integration/tools/serve/faults.hpp"

using namespace cedar::test;
using nlohmann::json;

namespace {

topology_options drafted(const std::string& node) {
  topology_options out;
  out.drafter = node;
  return out;
}

/// Tokens that were drafted and verified, at every place of a draft.
double metric_of_places(const server& one, const std::string& name) {
  double sum = 0;
  for (int place = 1; place <= 5; ++place)
    sum += one.metric(name + "{position=\"" + std::to_string(place) + "\"}");
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(serve_drafts)

BOOST_AUTO_TEST_CASE(says_the_same_and_tells_what_drafting_was_worth) {
  const server plain;
  const server one({}, drafted("node0"));
  const json ask = greedy("Once upon a time", 60);
  const json whole = json::parse(one.post("/v1/completions", ask).body);
  BOOST_TEST(whole.at("choices") ==
             json::parse(plain.post("/v1/completions", ask).body).at("choices"));
  const json& details = whole.at("usage").at("completion_tokens_details");
  const double accepted = details.at("accepted_prediction_tokens");
  const double rejected = details.at("rejected_prediction_tokens");
  BOOST_TEST(accepted > 20);
  BOOST_TEST(rejected > 0);
  BOOST_TEST(metric_of_places(one, "cedar_accepted_tokens_total") == accepted);
  BOOST_TEST(metric_of_places(one, "cedar_drafted_tokens_total") == accepted + rejected);
  const double spans = one.metric("cedar_draft_spans_total");
  BOOST_TEST(one.metric("cedar_drafted_tokens_total{position=\"1\"}") == spans);
  BOOST_TEST(one.metric("cedar_acceptance_length") == 1 + accepted / spans,
             boost::test_tools::tolerance(1e-4));
  BOOST_TEST(one.metric("cedar_edge_messages_total{edge=\"drafter -> scheduler draft_answers\"}") >=
             0);

  const json usage = json::parse(plain.post("/v1/completions", ask).body).at("usage");
  BOOST_TEST(!usage.contains("completion_tokens_details"));
  BOOST_TEST(plain.metric("cedar_draft_spans_total") == 0);
  BOOST_TEST(plain.metric("cedar_acceptance_length") == 0);
}

BOOST_AUTO_TEST_CASE(names_the_process_of_the_drafter_and_serves_again) {
  server one({}, drafted("side"));
  const std::string before = one.completion(greedy("The fox", 30));
  const double verified = one.metric("cedar_draft_spans_total");
  BOOST_TEST(verified > 0);
  for (const auto& [node, named] : {std::pair("side", "lost node 'side' (drafter)"),
                                    std::pair("node1", "lost node 'node1' (stage 'stage1'")}) {
    http_client client(one.port);
    client.send("POST", "/v1/completions", endless().dump());
    client.wait_for("data: ");
    ::kill(pid_of(one, node), SIGKILL);
    const auto events = events_of(client.receive().body);
    const std::string text = json::parse(events.back()).at("error").at("message");
    BOOST_TEST(contains(text, named), text);
    wait_ready(one);
    BOOST_TEST(one.completion(greedy("The fox", 30)) == before);
  }
  BOOST_TEST(one.metric("cedar_draft_spans_total") > verified);
  BOOST_TEST(one.wait_metric("cedar_scheduler_requests_running", 0));
  BOOST_TEST(one.wait_metric("cedar_kv_positions", 0));
  stop(one);
}

BOOST_AUTO_TEST_SUITE_END()
