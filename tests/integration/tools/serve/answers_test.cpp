// Goal: what clients get over HTTP is what the model says, in the form that they asked for. Method:
// a server of two processes, compared with `cedar run` of one.
#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <future>

#include "tests/integration/tools/serve/server.hpp"

using namespace cedar::test;
using nlohmann::json;

namespace {

/// The text of `cedar run` in one process, without the line's end.
std::string run_text(const std::string& prompt, std::uint32_t max_tokens) {
  const finished ran = run(CEDAR_PROGRAM, {"run", "-m", checkpoint_of("cedar-tiny").string(), "-p",
                                           prompt, "--max-tokens", std::to_string(max_tokens)});
  BOOST_REQUIRE_EQUAL(ran.code, 0);
  return ran.output.substr(0, ran.output.size() - 1);
}

/// One server for all cases that leave nothing behind.
const server& shared() {
  static const server one;
  return one;
}

json error_of(const http_reply& reply) {
  return json::parse(reply.body).at("error");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(serve_answers)

BOOST_AUTO_TEST_CASE(says_what_run_says) {
  const std::string prompt = "Once upon a time";
  const std::string expected = run_text(prompt, 60);
  json ask = greedy(prompt, 60);
  BOOST_TEST(shared().completion(ask) == expected);
  ask["stream"] = true;
  BOOST_TEST(shared().completion(ask) == expected);
}

BOOST_AUTO_TEST_CASE(chats_as_run_does) {
  const std::string question = "What is your name?";
  const finished ran = run(
      CEDAR_PROGRAM, {"run", "-m", checkpoint_of("cedar-tiny").string(), "--chat", "-p", question});
  BOOST_REQUIRE_EQUAL(ran.code, 0);
  json ask{{"model", "cedar-tiny"},
           {"messages", {{{"role", "user"}, {"content", question}}}},
           {"temperature", 0}};
  const json whole = json::parse(shared().post("/v1/chat/completions", ask).body);
  BOOST_TEST(whole.at("object") == "chat.completion");
  const json& choice = whole.at("choices").at(0);
  BOOST_TEST(choice.at("message").at("role") == "assistant");
  BOOST_TEST(choice.at("message").at("content").get<std::string>() + "\n" == ran.output);
  BOOST_TEST(choice.at("finish_reason") == "stop");

  ask["stream"] = true;
  const auto events = events_of(shared().post("/v1/chat/completions", ask).body);
  BOOST_TEST(events.back() == "[DONE]");
  const json first = json::parse(events.front()).at("choices").at(0).at("delta");
  BOOST_TEST(first.at("role") == "assistant");
  std::string text;
  for (std::size_t i = 0; i + 1 < events.size(); ++i)
    text += json::parse(events[i]).at("choices").at(0).at("delta").value("content", "");
  BOOST_TEST(text + "\n" == ran.output);
}

BOOST_AUTO_TEST_CASE(reuses_the_history_of_a_chat_and_says_so) {
  const server keeping({"--prefix-positions", "4096"}, std::nullopt);
  std::string story = "Tell me more about this.";
  for (int i = 0; i < 12; ++i) story += " Once upon a time there was a little cat in a red house.";
  json ask{{"model", "cedar-tiny"},
           {"messages", {{{"role", "user"}, {"content", story}}}},
           {"temperature", 0},
           {"max_tokens", 40},
           {"mode", "bounded"}};
  const auto asked = [&] { return json::parse(keeping.post("/v1/chat/completions", ask).body); };
  const auto cached = [](const json& answer) {
    return answer.at("usage").at("prompt_tokens_details").at("cached_tokens").get<int>();
  };
  const json first = asked();
  BOOST_TEST(cached(first) == 0);
  ask["messages"].push_back(first.at("choices").at(0).at("message"));
  ask["messages"].push_back({{"role", "user"}, {"content", "And then?"}});
  const json second = asked();
  // All that the first turn had, but for what the template puts after it.
  BOOST_TEST(cached(second) >= first.at("usage").at("prompt_tokens").get<int>() - 2);
  BOOST_TEST(cached(second) < second.at("usage").at("prompt_tokens").get<int>());
  BOOST_TEST(keeping.metric("cedar_prefix_hits_total") == 1);
  BOOST_TEST(keeping.metric("cedar_prefixes") >= 1);
  BOOST_TEST(keeping.metric("cedar_prefix_positions") > 0);
  BOOST_TEST(keeping.metric("cedar_prefix_reused_positions_total") > 0);
}

BOOST_AUTO_TEST_CASE(counts_tokens) {
  json ask = greedy("Once upon a time", 12);
  ask["ignore_eos"] = true;
  const json whole = json::parse(shared().post("/v1/completions", ask).body);
  BOOST_TEST(whole.at("usage").at("completion_tokens") == 12);
  BOOST_TEST(whole.at("choices").at(0).at("finish_reason") == "length");
  ask["stream"] = true;
  ask["stream_options"] = {{"include_usage", true}};
  const auto events = events_of(shared().post("/v1/completions", ask).body);
  const json last = json::parse(events.at(events.size() - 2));
  BOOST_TEST(last.at("usage") == whole.at("usage"));
}

BOOST_AUTO_TEST_CASE(ends_before_a_stop_string) {
  const std::string whole = shared().completion(greedy("Once upon a time", 60));
  BOOST_REQUIRE(whole.size() > 30);
  const std::string stop = whole.substr(17, 6);
  json ask = greedy("Once upon a time", 60);
  ask["stop"] = {stop};
  const json reply = json::parse(shared().post("/v1/completions", ask).body);
  BOOST_TEST(reply.at("choices").at(0).at("text") == whole.substr(0, whole.find(stop)));
  BOOST_TEST(reply.at("choices").at(0).at("finish_reason") == "stop");
  ask["stream"] = true;
  BOOST_TEST(shared().completion(ask) == whole.substr(0, whole.find(stop)));
}

BOOST_AUTO_TEST_CASE(goes_on_to_its_least_tokens) {
  const auto asked = [](std::uint32_t least) {
    const json ask{{"model", "cedar-tiny"},
                   {"messages", {{{"role", "user"}, {"content", "What is your name?"}}}},
                   {"temperature", 0},
                   {"max_tokens", 60},
                   {"min_tokens", least}};
    return json::parse(shared().post("/v1/chat/completions", ask).body);
  };
  const auto text = [](const json& answer) {
    return answer.at("choices").at(0).at("message").at("content").get<std::string>();
  };
  const json brief = asked(0);
  const int tokens = brief.at("usage").at("completion_tokens");
  BOOST_TEST(tokens < 30);
  BOOST_TEST(text(asked(5)) == text(brief));
  const json longer = asked(40);
  BOOST_TEST(longer.at("usage").at("completion_tokens") >= 40);
  BOOST_TEST(text(longer).starts_with(text(brief)));
}

BOOST_AUTO_TEST_CASE(scores_a_prompt_whatever_is_kept) {
  const server keeping({"--prefix-positions", "4096"}, std::nullopt);
  std::string story;
  for (int i = 0; i < 80; ++i) story += "Once upon a time there was a little cat. ";
  json ask = greedy(story, 2);
  keeping.completion(ask);
  keeping.completion(ask);
  BOOST_TEST(keeping.metric("cedar_prefix_hits_total") == 1);
  ask["prompt_logprobs"] = 1;
  const auto scores = [&](const server& of) {
    return json::parse(of.post("/v1/completions", ask).body)
        .at("choices")
        .at(0)
        .at("prompt_logprobs");
  };
  const json seen = scores(keeping);
  BOOST_TEST(seen.size() > 700U);
  BOOST_TEST(std::ranges::count(seen, json(nullptr)) == 1);
  BOOST_TEST(seen == scores(shared()));
}

BOOST_AUTO_TEST_CASE(gives_the_same_choices_for_the_same_seed) {
  json ask = greedy("Once upon a time", 24);
  ask["temperature"] = 1.5;
  ask["seed"] = 7;
  ask["n"] = 2;
  const json first = json::parse(shared().post("/v1/completions", ask).body);
  const json second = json::parse(shared().post("/v1/completions", ask).body);
  BOOST_TEST(first.at("choices") == second.at("choices"));
  BOOST_TEST(first.at("seed") == 7);
  BOOST_TEST(first.at("choices").at(0).at("text") != first.at("choices").at(1).at("text"));
  ask["n"] = 1;
  BOOST_TEST(shared().completion(ask) == first.at("choices").at(0).at("text"));
}

BOOST_AUTO_TEST_CASE(scores_tokens) {
  json ask = greedy("Once upon a time", 8);
  ask["logprobs"] = 3;
  const json scores =
      json::parse(shared().post("/v1/completions", ask).body).at("choices").at(0).at("logprobs");
  std::string text;
  for (std::size_t i = 0; i < scores.at("tokens").size(); ++i) {
    const std::string token = scores.at("tokens").at(i);
    BOOST_TEST(scores.at("text_offset").at(i) == text.size());
    text += token;
    const json& top = scores.at("top_logprobs").at(i);
    BOOST_TEST(top.size() == 3U);
    const double chosen = scores.at("token_logprobs").at(i);
    BOOST_TEST(std::abs(top.at(token).get<double>() - chosen) < 1e-4);
  }
  BOOST_TEST(text == shared().completion(greedy("Once upon a time", 8)));
}

BOOST_AUTO_TEST_CASE(answers_many_at_once_as_one_by_one) {
  const char* const beginnings[] = {"Once upon a time", "The fox", "A small bear", "In the wood"};
  std::vector<std::string> alone;
  for (std::size_t i = 0; i < 16; ++i)
    alone.push_back(
        shared().completion(greedy(beginnings[i % 4], 20 + static_cast<std::uint32_t>(i) * 3)));
  std::vector<std::future<std::string>> together;
  for (std::size_t i = 0; i < 16; ++i)
    together.push_back(std::async(std::launch::async, [&, i] {
      json ask = greedy(beginnings[i % 4], 20 + static_cast<std::uint32_t>(i) * 3);
      ask["stream"] = true;
      return shared().completion(ask);
    }));
  for (std::size_t i = 0; i < 16; ++i) {
    const std::string text = together[i].get();
    BOOST_TEST(text == alone[i]);
  }
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong_with_a_request) {
  const std::string path = "/v1/completions";
  http_reply reply = shared().post(path, {{"model", "cedar-tiny"}, {"temperature", "hot"}});
  BOOST_TEST(reply.status == 400);
  BOOST_TEST(error_of(reply).at("type") == "invalid_request_error");
  BOOST_TEST(error_of(reply).at("param") == "temperature");
  reply = exchange(shared().port, "POST", path, "{nonsense");
  BOOST_TEST(reply.status == 400);
  json other = greedy("x", 1);
  other["model"] = "gpt-4";
  reply = shared().post(path, other);
  BOOST_TEST(reply.status == 404);
  BOOST_TEST(error_of(reply).at("code") == "model_not_found");
  reply = shared().get("/v2/nothing");
  BOOST_TEST(reply.status == 404);
  reply = shared().get(path);
  BOOST_TEST(reply.status == 405);
  BOOST_TEST(reply.headers["allow"] == "POST");
  reply = exchange(shared().port, "POST", path, std::string(5U << 20U, ' '));
  BOOST_TEST(reply.status == 413);
  std::vector<int> long_prompt(5000, 5);
  reply = shared().post(path, {{"model", "cedar-tiny"}, {"prompt", long_prompt}});
  BOOST_TEST(reply.status == 400);
  BOOST_TEST(error_of(reply).at("code") == "context_length_exceeded");
  http_client broken(shared().port);
  broken.send_raw("this is no HTTP\r\n\r\n");
  BOOST_TEST(broken.receive().status == 400);
}

BOOST_AUTO_TEST_CASE(takes_requests_one_after_the_other) {
  http_client client(shared().port);
  client.send("GET", "/health");
  BOOST_TEST(client.receive().status == 200);
  client.send("POST", "/v1/completions", greedy("A fox", 4).dump());
  client.send("GET", "/v1/models");  // before the answer
  BOOST_TEST(client.receive().status == 200);
  const json models = json::parse(client.receive().body);
  BOOST_TEST(models.at("data").at(0).at("id") == "cedar-tiny");
}

BOOST_AUTO_TEST_CASE(shows_its_state) {
  const json ready = json::parse(shared().get("/ready").body);
  BOOST_TEST(ready.at("ready") == true);
  std::string units;
  for (const json& unit : ready.at("units")) units += unit.at("unit").get<std::string>() + " ";
  for (const char* unit : {"scheduler", "embedding", "stage0", "stage1", "head"})
    BOOST_TEST(contains(units, unit), units);
  BOOST_TEST(shared().get("/v1/models/cedar-tiny").status == 200);
  BOOST_TEST(shared().get("/v1/models/other").status == 404);
  shared().completion(greedy("A fox", 4));
  BOOST_TEST(shared().metric("cedar_generated_tokens_total") >= 4);
  BOOST_TEST(shared().metric(R"(cedar_unit_up{node="node1",unit="stage1"})") == 1);
  BOOST_TEST(shared().wait_metric("cedar_answers_open", 0));
}

BOOST_AUTO_TEST_CASE(serves_without_a_topology) {
  server one({}, std::nullopt);
  BOOST_TEST(one.completion(greedy("Once upon a time", 30)) == run_text("Once upon a time", 30));
  one.process.signal(SIGTERM);
  BOOST_TEST(one.process.wait_end());
  BOOST_TEST(one.process.code() == 0);
}

BOOST_AUTO_TEST_CASE(take_the_time_of_emulated_links) {
  topology_options options;
  options.more = "links: [{between: [node0, node1], latency_ms: 40}]";
  const server apart({"--emulate-links"}, options);
  BOOST_TEST(contains(apart.process.errors(), "emulating links: node0 <-> node1 40 ms"),
             apart.process.errors());
  json ask = greedy("Once upon a time", 6);
  ask["ignore_eos"] = true;
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = apart.completion(ask);
  // Every token goes there and back.
  BOOST_TEST(((std::chrono::steady_clock::now() - begin) >= 6 * 80ms));
  BOOST_TEST(text == server().completion(ask));
}

BOOST_AUTO_TEST_SUITE_END()
