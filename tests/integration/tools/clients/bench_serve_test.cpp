// Goal: `cedar bench serve` counts every request as what it came to, and its --verify means
// something. Method: short loads on servers of two processes, well, refusing and gone; numbers must
// fit each other, how large they are is the machine's business.
#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"
#include "tests/integration/tools/serve/server.hpp"

using namespace cedar::test;
using nlohmann::json;

namespace {

struct bench_run {
  finished ran;
  json report;
};

bench_run bench(std::vector<std::string> arguments) {
  const temporary_folder folder;
  const std::string file = (folder.path() / "report.json").string();
  arguments.insert(arguments.begin(), {"bench", "serve", "--json", file});
  bench_run out{run(CEDAR_PROGRAM, arguments), {}};
  std::ifstream in(file);
  if (in) out.report = json::parse(in);
  return out;
}

std::vector<std::string> with(std::vector<std::string> arguments, std::vector<std::string> more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const std::vector<std::string> short_answers{"--prompts",    "6", "--prompt-tokens", "9",
                                             "--max-tokens", "5", "--ignore-eos"};

std::string url_of(const server& one) {
  return "http://127.0.0.1:" + std::to_string(one.port);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(command_bench_serve)

BOOST_AUTO_TEST_CASE(a_server_of_its_own) {
  const temporary_folder folder;
  const std::string topology = folder.write("t.yaml", topology_text({})).string();
  const auto [ran, report] =
      bench(with({"--topology", topology, "-m", checkpoint_of("cedar-tiny").string(),
                  "--concurrency", "4", "--requests", "20", "--verify"},
                 short_answers));
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
  BOOST_TEST(report.at("requests") == 20);
  BOOST_TEST(report.at("status").at("200") == 20);
  BOOST_TEST(report.at("failed") == 0);
  BOOST_TEST(report.at("unfinished") == 0);
  BOOST_TEST(report.at("tokens") == 20 * 5);
  BOOST_TEST(report.at("prompt_tokens") == 20 * 9);
  BOOST_TEST(report.at("finish_reasons") == json({{"length", 20}}));
  BOOST_TEST(report.at("whole_answer_ms").at("count") == 20);
  const json& first = report.at("first_text_ms");
  BOOST_TEST(first.at("p50").get<double>() > 0);
  BOOST_TEST(first.at("p50") <= first.at("p90"));
  BOOST_TEST(first.at("p90") <= first.at("p99"));
  BOOST_TEST(first.at("p99") <= first.at("max"));
  BOOST_TEST(report.at("verified") == json({{"prompts", 6}, {"compared", 20}, {"differing", 0}}));
  BOOST_TEST(report.at("memory").at("processes") == 2);
  BOOST_TEST(report.at("memory").at("begin_bytes").get<double>() > 1e6);
  BOOST_TEST(report.at("memory").at("warm_bytes") <= report.at("memory").at("max_bytes"));
  BOOST_TEST(report.at("memory").at("max_bytes") >= report.at("memory").at("begin_bytes"));
  BOOST_TEST(report.at("left_over").empty());
  BOOST_TEST(report.at("problem").is_null());
  BOOST_TEST(contains(ran.output, "20 answers to 6 prompts, 0 differ"), ran.output);
}

BOOST_AUTO_TEST_CASE(an_open_loop) {
  const server one;
  const auto [ran, report] = bench(with(
      {"--url", url_of(one), "--rate", "100", "--seconds", "0.2", "--seed", "5"}, short_answers));
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
  // The seed has settled how many arrive in that time.
  const auto count = report.at("requests").get<int>();
  BOOST_TEST(count > 5);
  BOOST_TEST(count < 50);
  BOOST_TEST(report.at("status").at("200") == count);
  BOOST_TEST(!report.contains("memory"));
  const auto again = bench(with(
      {"--url", url_of(one), "--rate", "100", "--seconds", "0.2", "--seed", "5"}, short_answers));
  BOOST_TEST(again.report.at("requests") == count);
}

BOOST_AUTO_TEST_CASE(refusals_are_answers) {
  const server one({"--queue-requests", "2"});
  const auto [ran, report] = bench({"--url", url_of(one), "--concurrency", "8", "--requests", "40",
                                    "--prompts", "6", "--max-tokens", "30", "--ignore-eos"});
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
  const auto answered = report.at("status").at("200").get<int>();
  const auto refused = report.at("status").at("429").get<int>();
  BOOST_TEST(answered > 0);
  BOOST_TEST(refused > 0);
  BOOST_TEST(answered + refused == 40);
  BOOST_TEST(report.at("until_refused_ms").at("count") == refused);
  BOOST_TEST(report.at("tokens") == answered * 30);
}

BOOST_AUTO_TEST_CASE(what_is_not_answered_in_time_fails) {
  const server one;
  const auto [ran, report] =
      bench({"--url", url_of(one), "--concurrency", "2", "--requests", "3", "--max-tokens", "1500",
             "--ignore-eos", "--deadline-s", "0.05"});
  BOOST_TEST(ran.code == 1);
  BOOST_TEST(report.at("unfinished") == 3);
  BOOST_TEST(contains(ran.errors, "3 did not end in time"), ran.errors);
  // What was given up is freed.
  BOOST_TEST(one.wait_metric("cedar_answers_open", 0));
}

BOOST_AUTO_TEST_CASE(the_server_ends_what_was_told_to_end) {
  const server one;
  const auto [ran, report] =
      bench({"--url", url_of(one), "--concurrency", "2", "--requests", "3", "--max-tokens", "1900",
             "--ignore-eos", "--timeout-s", "0.1", "--prompts", "1"});
  BOOST_TEST(report.at("failed") == 0, report.at("failures").dump());
  BOOST_TEST(report.at("unfinished") == 0);
  BOOST_TEST(report.at("expired").get<int>() + report.at("status").at("503").get<int>() == 3);
  BOOST_TEST(report.at("timeout_ms") == 100);
  BOOST_TEST(report.at("latest_end_ms").get<double>() >= 100);
  BOOST_TEST(contains(ran.output, " s after its timeout of 0.1 s\n"), ran.output);
  BOOST_TEST(ran.code == 1);
  BOOST_TEST(contains(ran.errors, "no request was answered"), ran.errors);
  BOOST_TEST(one.metric("cedar_answers_open") == 0);
}

BOOST_AUTO_TEST_CASE(overload_ends_in_good_order) {
  const server one({"--queue-requests", "12"});
  const auto [ran, report] = bench({"--url", url_of(one), "--rate", "500", "--seconds", "1",
                                    "--max-tokens", "200", "--ignore-eos", "--timeout-s", "1"});
  BOOST_REQUIRE_MESSAGE(report.is_object(), ran.errors);
  BOOST_TEST(report.at("failed") == 0, report.at("failures").dump());
  BOOST_TEST(report.at("unfinished") == 0);
  const json& status = report.at("status");
  BOOST_TEST(status.at("429").get<int>() > 0);
  BOOST_TEST(status.at("200").get<int>() + status.at("429").get<int>() +
                 status.at("503").get<int>() + report.at("expired").get<int>() ==
             report.at("requests").get<int>());
  BOOST_TEST(one.wait_metric("cedar_answers_open", 0));
}

BOOST_AUTO_TEST_CASE(a_lost_node_fails) {
  server one;
  program load(CEDAR_PROGRAM, {"bench", "serve", "--url", url_of(one), "--concurrency", "1",
                               "--requests", "1", "--max-tokens", "1900", "--ignore-eos"});
  // Its text has begun: before that the answer would be 503.
  const auto until = std::chrono::steady_clock::now() + patience;
  while (one.metric("cedar_generated_tokens_total") < 20) {
    BOOST_REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::sleep_for(5ms);
  }
  for (const pid_t pid : one.process.descendants()) ::kill(pid, SIGKILL);
  BOOST_TEST(load.wait_end());
  BOOST_TEST(load.code() == 1);
  BOOST_TEST(contains(load.output(), "error event: "), load.output());
  BOOST_TEST(contains(load.output(), "'node1'"), load.output());
}

BOOST_AUTO_TEST_CASE(ends_with_ctrl_c_and_ends_its_server) {
  const temporary_folder folder;
  const std::string topology = folder.write("t.yaml", topology_text({})).string();
  program load(CEDAR_PROGRAM, {"bench", "serve", "--topology", topology, "-m",
                               checkpoint_of("cedar-tiny").string(), "--seconds", "600"});
  BOOST_REQUIRE(load.wait_descendants(2));
  load.signal(SIGINT);
  BOOST_TEST(load.wait_end());
  BOOST_TEST(load.code() == 130);
  BOOST_TEST(load.wait_descendants(0));
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong) {
  const auto said = [](std::vector<std::string> arguments, int code) {
    const finished ran = run(CEDAR_PROGRAM, with({"bench", "serve"}, std::move(arguments)));
    BOOST_TEST(ran.code == code, ran.errors);
    return ran.output + ran.errors;
  };
  std::uint16_t free_port = 0;
  {
    server one;
    free_port = one.port;
    BOOST_TEST(contains(said({"--url", url_of(one), "--prompt-tokens", "5000"}, 1), "status 400"));
  }
  const std::string gone = "http://127.0.0.1:" + std::to_string(free_port);
  BOOST_TEST(contains(said({"--url", gone}, 1), "nothing answers at " + gone));
  BOOST_TEST(contains(said({"--url", "https://x"}, 1), "https://"));
  BOOST_TEST(contains(said({"--topology", "/nowhere.yaml"}, 1), "/nowhere.yaml"));
  said({}, 2);
  said({"--url", gone, "--rate", "5", "--concurrency", "2"}, 2);
  BOOST_TEST(contains(said({"--url", gone, "--timeout-s", "60"}, 2), "--deadline-s"));
}

BOOST_AUTO_TEST_SUITE_END()
