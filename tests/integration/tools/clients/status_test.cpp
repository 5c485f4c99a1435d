// Goal: `cedar status` says what a server is doing, and what is wrong with it or its address.
// Method: servers of two processes: used, busy, with a lost node, gone; something else that
// listens.
#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/integration/tools/serve/server.hpp"

using namespace cedar::test;
using nlohmann::json;

namespace {

finished status(std::uint16_t port, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"status", "http://127.0.0.1:" + std::to_string(port)});
  return run(CEDAR_PROGRAM, more);
}

json status_json(const server& one) {
  const finished ran = status(one.port, {"--json"});
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
  return json::parse(ran.output);
}

/// What passed an edge, once it is so many messages: nodes are asked now and then.
json wait_for_edge(const server& one, const std::string& edge, double messages) {
  const auto until = std::chrono::steady_clock::now() + patience;
  json edges;
  do {
    edges = status_json(one).at("edges");
    if (edges.contains(edge) && edges.at(edge).at("messages") >= messages) return edges.at(edge);
  } while (std::chrono::steady_clock::now() < until);
  BOOST_FAIL("edge " + edge + " in " + edges.dump());
  return {};
}

/// The status, once what its caches hold is as wished: nodes are asked now and then.
template <class Wish>
json wait_for_caches(const server& one, Wish wish) {
  const auto until = std::chrono::steady_clock::now() + patience;
  json seen;
  do {
    seen = status_json(one);
    if (wish(seen.at("caches"))) return seen;
  } while (std::chrono::steady_clock::now() < until);
  BOOST_FAIL("caches: " + seen.at("caches").dump());
  return {};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(command_status)

BOOST_AUTO_TEST_CASE(counts_what_was_asked) {
  const server one;
  json ask = greedy("Once upon a time", 12);
  ask["ignore_eos"] = true;
  one.completion(ask);
  one.completion(ask);
  one.post("/v1/completions", json::object());
  one.get("/health");
  BOOST_REQUIRE(one.wait_metric("cedar_answers_open", 0));
  const json seen = status_json(one);
  BOOST_TEST(seen.at("model") == "cedar-tiny");
  BOOST_TEST(seen.at("ready") == true);
  BOOST_TEST(seen.at("units").size() == 6U);
  BOOST_TEST(seen.at("responses").at("answers") == json({{"200", 2.0}, {"400", 1.0}}));
  BOOST_TEST(seen.at("responses").at("others").get<double>() >= 1);
  BOOST_TEST(seen.at("tokens").at("generated") == 24);
  BOOST_TEST(seen.at("tokens").at("generated_per_second").get<double>() > 0);
  BOOST_TEST(seen.at("requests").at("admitted") == 0);
  BOOST_TEST(seen.at("kv_positions_max").get<double>() > 0);
  BOOST_TEST(seen.at("first_token_ms").get<double>() > 0);
  BOOST_TEST(seen.at("first_token_ms") <= seen.at("generation_ms"));
  const std::string edge = "stage0 -> stage1 activation";
  const json passed = wait_for_edge(one, edge, 24);
  BOOST_TEST(passed.at("messages") == 24);
  BOOST_TEST(passed.at("bytes").get<double>() > 24);
  for (const char* ends : {"node0 -> node1", "node1 -> node0"})
    for (const char* key : {"round_trip_seconds", "bytes_per_second"})
      BOOST_TEST(seen.at("links").at(ends).at(key).get<double>() > 0);
  const finished text = status(one.port);
  BOOST_TEST(text.code == 0);
  BOOST_TEST(contains(text.output, "\nnode0 -> node1 "), text.output);
  for (const std::string& part :
       std::vector<std::string>{"cedar-tiny\nready\n", edge + " ", "stage1", "node1", "2 x 200",
                                "1 x 400", "24 generated"})
    BOOST_TEST(contains(text.output, part), text.output);
}

BOOST_AUTO_TEST_CASE(shows_what_runs) {
  const server one;
  json ask = greedy("Once upon a time", 1900);
  ask["ignore_eos"] = true;
  ask["stream"] = true;
  http_client client(one.port);
  client.send("POST", "/v1/completions", ask.dump());
  client.wait_for("data: ");
  const json seen = status_json(one);
  BOOST_TEST(seen.at("requests").at("running") == 1);
  BOOST_TEST(seen.at("requests").at("admitted") == 1);
  BOOST_TEST(seen.at("requests").at("admitted_tokens").get<double>() > 1900);
  BOOST_TEST(seen.at("kv_positions").get<double>() > 0);
  // Each stage has a page of each of its owners at least, and rings of the request.
  wait_for_caches(one, [](const json& caches) {
    return caches.at("pages").get<double>() > 0 && caches.at("rings").get<double>() > 0;
  });
}

BOOST_AUTO_TEST_CASE(shows_what_caches_hold) {
  topology_options options;
  options.more = "limits: {prefix_positions: 1024}";
  const server one({}, options);
  std::string story;
  for (int i = 0; i < 30; ++i) story += "Once upon a time there was a little cat. ";
  one.completion(greedy(story, 2));
  const json seen = wait_for_caches(one, [](const json& caches) {
    return caches.at("kept_pages").get<double>() > 0 && caches.at("rings") == 0;
  });
  // Nothing runs, so that all pages are those of the prefix.
  BOOST_TEST(seen.at("caches").at("pages") == seen.at("caches").at("kept_pages"));
  BOOST_TEST(seen.at("prefixes").at("kept") == 1);
  BOOST_TEST(seen.at("prefixes").at("positions").get<double>() > 0);
  BOOST_TEST(contains(status(one.port).output, "prefixes   1 of "), status(one.port).output);
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong) {
  std::uint16_t port = 0;
  {
    const server one;
    port = one.port;
  }
  const finished gone = status(port);
  BOOST_TEST(gone.code == 1);
  BOOST_TEST(contains(gone.errors, "nothing answers at http://127.0.0.1:" + std::to_string(port)),
             gone.errors);
  const finished wrong = run(CEDAR_PROGRAM, {"status", "127.0.0.1:1/v1"});
  BOOST_TEST(wrong.code == 1);
  BOOST_TEST(contains(wrong.errors, "http://HOST:PORT"), wrong.errors);
  BOOST_TEST(run(CEDAR_PROGRAM, {"status"}).code == 2);
}

BOOST_AUTO_TEST_SUITE_END()
