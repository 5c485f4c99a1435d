// Goal: `cedar bench` measures what it says, and notices when there is nothing to measure. Method:
// small runs of each, whose numbers must fit each other; how large they are is the machine's
// business.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"
#include "tests/support/temporary_folder.hpp"
#include "topology/plan/message_size.hpp"

using namespace cedar::test;
using nlohmann::json;

namespace {

const std::string tiny = checkpoint_of("cedar-tiny").string();

json bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "bench");
  arguments.emplace_back("--json");
  const finished ran = run(CEDAR_PROGRAM, arguments);
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
  return json::parse(ran.output);
}

json bench_pipeline(const topology_options& topology) {
  const temporary_folder folder;
  return bench({"pipeline", "--topology", folder.write("t.yaml", topology_text(topology)).string(),
                "-m", tiny, "--tokens", "6", "--prompt-tokens", "9", "--repeat", "2"});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(command_bench)

BOOST_AUTO_TEST_CASE(a_pipeline_of_two_processes) {
  topology_options topology;
  topology.more = "limits: {rows_per_step: 4}";
  const json seen = bench_pipeline(topology);
  BOOST_TEST(seen.at("same_tokens") == true);
  // Two counted rounds, five decode steps each; the first token belongs to the prompt.
  BOOST_TEST(seen.at("decode_step").at("steps") == 10);
  const json& hop = seen.at("hop");
  BOOST_TEST(hop.at("hops") == (json{"stage0 -> stage1 activation", "head -> scheduler proposal"}));
  BOOST_TEST(hop.at("hop_us").get<double>() ==
             seen.at("decode_step").at("between_us").get<double>() / 2);
  BOOST_TEST(hop.at("bare_us").get<double>() > 0);
  BOOST_TEST(contains(hop.at("transport"), "tcp"));
  const json& edge = seen.at("edges").at("stage0 -> stage1 activation");
  // Prompts of 9 rows in three steps, and five decode steps: sizes by the plan's formula.
  BOOST_TEST(edge.at("messages") == 2 * (3 + 5));
  const auto config = cedar::model::parse_config(tiny);
  BOOST_TEST_REQUIRE(config.has_value());
  const auto size = cedar::topology::activation_size(*config, false);
  BOOST_TEST(edge.at("bytes") == 2 * size.bytes({.requests = 3 + 5, .rows = 9 + 5}));
  BOOST_TEST(seen.at("units").size() == 5U);
}

BOOST_AUTO_TEST_CASE(a_pipeline_without_hops) {
  topology_options topology;
  topology.cuts.clear();
  const json seen = bench_pipeline(topology);
  BOOST_TEST(seen.at("hop").at("hops").empty());
  BOOST_TEST(seen.at("hop").at("hop_us").is_null());
}

BOOST_AUTO_TEST_CASE(rounds_of_the_transport) {
  const json seen = bench({"transport", "--there", "40980", "--back", "20", "--rounds", "20"});
  BOOST_TEST(contains(seen.at("transport"), "tcp"));
  BOOST_TEST(seen.at("round_awake_us").get<double>() > 0);
  BOOST_TEST(seen.at("round_after_work_us").get<double>() > 0);
}

BOOST_AUTO_TEST_CASE(prompts_in_both_modes) {
  const json seen = bench({"prefill", "-m", tiny, "--prompt-tokens", "80", "--repeat", "1"});
  BOOST_TEST(seen.at("modes").at("exact").at("ratio") == 1.0);
  BOOST_TEST(seen.at("modes").at("bounded").at("ms").get<double>() > 0);
  for (const auto& [mode, decoder_rows] : {std::pair{"exact", 80}, {"bounded", 64}}) {
    BOOST_TEST(seen.at("modes").at(mode).at("encoder_rows") == 80);
    BOOST_TEST(seen.at("modes").at(mode).at("decoder_rows") == decoder_rows);  // the window's
  }
  BOOST_TEST(
      bench({"prefill", "-m", tiny, "--prompt-tokens", "9", "--repeat", "1", "--modes", "exact"})
          .at("modes")
          .size() == 1U);
}

BOOST_AUTO_TEST_CASE(prompts_by_operation) {
  const json seen = bench({"prefill", "-m", tiny, "--prompt-tokens", "40", "--repeat", "2"});
  for (const char* mode : {"prompt, exact", "prompt, bounded"}) {
    double us = 0;
    double shares = 0;
    for (const json& row : seen.at("rows")) {
      if (row.at("name") == mode) us = row.at("time_us").at("median");
      if (row.at("name").get<std::string>().starts_with(mode + std::string(": ")))
        shares += row.at("numbers").at("share").get<double>();
    }
    BOOST_TEST(us > 0);
    BOOST_TEST(std::abs(shares - 1) < 1e-9);
  }
}

BOOST_AUTO_TEST_CASE(decode_steps_by_operation) {
  const json seen =
      bench({"decode", "-m", tiny, "--tokens", "5", "--requests", "2", "--repeat", "2"});
  double shares = 0;
  bool attends = false;
  for (const json& row : seen.at("rows")) {
    const std::string name = row.at("name");
    if (!name.starts_with("decode step: ")) continue;
    shares += row.at("numbers").at("share").get<double>();
    // A row of each request in every layer, in every step.
    if (name == "decode step: attention") attends = row.at("numbers").at("calls") == 12.0;
  }
  BOOST_TEST(std::abs(shares - 1) < 1e-9);
  BOOST_TEST(attends);
  BOOST_TEST(seen.at("rows").at(0).at("name") == "time to first token");
  const json& numbers = seen.at("rows").at(1).at("numbers");
  BOOST_TEST(numbers.at("tokens_per_second").get<double>() > 0);
  BOOST_TEST(numbers.at("share_in_operations").get<double>() > 0);
  BOOST_TEST(numbers.at("share_in_operations").get<double>() < 1);
}

BOOST_AUTO_TEST_CASE(kernels_of_a_small_model) {
  const json seen =
      bench({"kernels", "--like", tiny, "--rows", "1,3", "--entries", "64", "--seconds", "0.001",
             "--repeat", "2", "--threads", "1,2", "--stream-mib", "8"});
  BOOST_TEST(seen.at("bench") == "kernels");
  std::size_t with_share = 0;
  for (const json& row : seen.at("rows")) with_share += row.at("numbers").count("share");
  BOOST_TEST(with_share > 20U);
  std::size_t choices = 0;
  for (const json& row : seen.at("rows")) choices += row.at("numbers").count("of_scoring");
  BOOST_TEST(choices == 2U);  // of 64 keys, on one thread and on two
  const json one = bench({"kernels", "--like", tiny, "--rows", "3", "--entries", "64", "--only",
                          "^linear_fp4 .* 3 rows", "--seconds", "0.001", "--isa", "avx2",
                          "--threads", "1", "--stream-mib", "8", "--no-onednn"});
  BOOST_TEST(one.at("rows").size() == 3U);
}

BOOST_AUTO_TEST_CASE(layers_of_a_small_model) {
  const json seen =
      bench({"layer", "--like", tiny, "--threads", "1", "--repeat", "2", "--context", "512"});
  const json& layer = seen.at("rows").at(0);
  BOOST_TEST(layer.at("numbers").at("ratio").get<double>() > 0);
  BOOST_TEST(layer.at("numbers").at("bytes").get<double>() > 0);
  double calls = 0;
  for (const json& row : seen.at("rows"))
    if (row.at("name").get<std::string>().ends_with(": attention"))
      calls = row.at("numbers").at("calls");
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(contexts_of_a_small_model_are_drawn) {
  const temporary_folder folder;
  const auto file = folder.path() / "plot.svg";
  const json seen = bench({"context", "--like", tiny, "--threads", "1", "--repeat", "1",
                           "--contexts", "64,512", "--svg", file.string()});
  BOOST_TEST(seen.at("rows").size() % 2 == 0U);
  BOOST_TEST(seen.at("rows").back().at("name") == "all 12 layers, context 512");
  std::ifstream in(file);
  const std::string svg((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  BOOST_TEST(contains(svg, "all 12 layers"));
}

BOOST_AUTO_TEST_CASE(two_runs_are_compared) {
  const temporary_folder folder;
  const std::vector<std::string> kernels{
      "kernels",    "--like",    tiny, "--rows",       "1", "--entries", "64",   "--only",
      "^rms_norm ", "--threads", "1",  "--stream-mib", "8", "--seconds", "0.001"};
  const std::string a = folder.write("a.json", bench(kernels).dump()).string();
  const std::string b = folder.write("b.json", bench(kernels).dump()).string();
  const json seen = bench({"compare", a, b});
  BOOST_TEST_REQUIRE(seen.at("rows").size() == 1U);
  BOOST_TEST(seen.at("rows").at(0).at("ratio").get<double>() > 0);
  const finished shown = run(CEDAR_PROGRAM, {"bench", "compare", a, b});
  BOOST_TEST(shown.code == 0);
  BOOST_TEST(contains(shown.output, "rms_norm"), shown.output);
  const std::string other =
      folder.write("c.json", bench({"decode", "-m", tiny, "--tokens", "2", "--repeat", "1"}).dump())
          .string();
  const finished refused = run(CEDAR_PROGRAM, {"bench", "compare", a, other});
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(contains(refused.errors, "bench kernels cannot be compared with bench decode"),
             refused.errors);
  const finished missing = run(CEDAR_PROGRAM, {"bench", "compare", a, "/nowhere"});
  BOOST_TEST(missing.code == 1);
  BOOST_TEST(contains(missing.errors, "/nowhere"), missing.errors);
}

BOOST_AUTO_TEST_CASE(drafts_of_every_setting) {
  const json seen =
      bench({"spec", "-m", tiny, "--batch", "1,3", "--tokens", "12", "--repeat", "1"});
  BOOST_REQUIRE(seen.at("batches").size() == 2U);
  for (const json& batch : seen.at("batches")) {
    const json& draft = batch.at("draft");
    for (const char* setting : {"off", "fixed:1", "fixed:3", "fixed:5", "auto"})
      BOOST_TEST(draft.at(setting).at("tokens_per_second").get<double>() > 0);
    BOOST_TEST(draft.at("off").at("ratio") == 1.0);
    BOOST_TEST(draft.at("off").at("acceptance_length") == 1.0);
    BOOST_TEST(draft.at("fixed:1").at("verified_length").get<double>() > 0.5);
    BOOST_TEST(draft.at("fixed:5").at("acceptance_length").get<double>() >
               draft.at("fixed:1").at("acceptance_length").get<double>());
  }
  BOOST_TEST(bench({"spec", "-m", tiny, "--batch", "1", "--tokens", "2", "--repeat", "1", "--draft",
                    "fixed:2"})
                 .at("batches")
                 .at(0)
                 .at("draft")
                 .size() == 2U);
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong) {
  const finished missing = run(CEDAR_PROGRAM, {"bench", "pipeline", "--topology", "/nowhere"});
  BOOST_TEST(missing.code == 1);
  BOOST_TEST(contains(missing.errors, "/nowhere"), missing.errors);
  const finished mode = run(CEDAR_PROGRAM, {"bench", "prefill", "-m", tiny, "--modes", "quick"});
  BOOST_TEST(mode.code == 2);
  const finished draft = run(CEDAR_PROGRAM, {"bench", "spec", "-m", tiny, "--draft", "fixed:6"});
  BOOST_TEST(draft.code == 1);
  BOOST_TEST(contains(draft.errors, "--draft fixed:6: drafts of 6 tokens are longer"),
             draft.errors);
  const finished word = run(CEDAR_PROGRAM, {"bench", "spec", "-m", tiny, "--draft", "on"});
  BOOST_TEST(word.code == 1);
  BOOST_TEST(contains(word.errors, "--draft on: write off, auto, or fixed:K"), word.errors);
  const finished only = run(CEDAR_PROGRAM, {"bench", "kernels", "--only", "(", "--list"});
  BOOST_TEST(only.code == 1);
  BOOST_TEST(contains(only.errors, "--only (: "), only.errors);
  const finished none = run(CEDAR_PROGRAM, {"bench", "kernels", "--only", "nothing", "--list"});
  BOOST_TEST(contains(none.errors, "--only nothing has no match"), none.errors);
  const finished kind =
      run(CEDAR_PROGRAM, {"bench", "layer", "--like", tiny, "--kind", "none", "--context", "64"});
  BOOST_TEST(kind.code == 1);
  BOOST_TEST(contains(kind.errors, "--kind: the model has "), kind.errors);
  BOOST_TEST(run(CEDAR_PROGRAM, {"bench"}).code == 2);
}

BOOST_AUTO_TEST_SUITE_END()
