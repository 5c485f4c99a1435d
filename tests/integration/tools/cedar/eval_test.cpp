// Goal: `eval replay` reports what each mode and each hit did to the answers: nothing in exact and
// halo, whatever the hit; wrong input is named. Method: the program over tiny texts for cedar-tiny.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace cedar::test;
using nlohmann::json;

namespace {

finished eval(const std::filesystem::path& texts, std::vector<std::string> more) {
  std::vector<std::string> arguments{
      "eval", "replay", "-m", checkpoint_of("cedar-tiny").string(), "--texts", texts.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run(CEDAR_PROGRAM, arguments);
}

std::string texts() {
  std::string story = "The secret word of the red kite is lantern.";
  for (int i = 0; i < 14; ++i) story += " One day Lily went to the park with her red kite.";
  return json{{"text", story}}.dump() + "\n" +
         json{{"text", story + " The secret word of the red kite is"}, {"answer", " lantern"}}
             .dump() +
         "\n";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(eval_replay)

BOOST_AUTO_TEST_CASE(finds_no_distance_where_bits_are_equal) {
  const temporary_folder folder;
  const auto file = folder.write("texts.jsonl", texts());
  const finished ran = eval(file, {"--hits", "0.5,1", "--following", "4", "--format", "json"});
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
  const json lines = json::parse(ran.output);
  BOOST_REQUIRE_EQUAL(lines.size(), 9U);  // three modes, each cold and with two hits
  for (const json& line : lines) {
    BOOST_TEST(line.at("texts") == 2);
    BOOST_TEST(line.at("answers") == 1);
    if (line.at("mode") == "bounded") continue;
    BOOST_TEST(line.at("relative_rms") == 0.0);
    BOOST_TEST(line.at("kl") == 0.0);
    BOOST_TEST(line.at("top1_agreement") == 1.0);
    BOOST_TEST(line.at("recalled") == lines[0].at("recalled"));
  }
  const json& bounded = lines[5];
  BOOST_TEST(bounded.at("mode") == "bounded");
  BOOST_TEST(bounded.at("hit") == 1.0);
  BOOST_TEST(bounded.at("cached_tokens").get<double>() > 64);
  BOOST_TEST(bounded.at("replayed_rows") == 64.0);
  BOOST_TEST(bounded.at("relative_rms").get<double>() > 0);
  BOOST_TEST(bounded.at("encoder_rows").get<double>() < lines[3].at("encoder_rows").get<double>());
}

BOOST_AUTO_TEST_CASE(prints_a_table_and_csv) {
  const temporary_folder folder;
  const auto file = folder.write("texts.jsonl", texts());
  const std::vector<std::string> little{"--modes", "bounded", "--hits", "1", "--following", "2"};
  auto csv = little;
  csv.insert(csv.end(), {"--format", "csv"});
  const finished values = eval(file, csv);
  BOOST_TEST(values.code == 0);
  BOOST_TEST(values.output.starts_with("mode,hit,texts,rows,cached_tokens,"), values.output);
  BOOST_TEST(std::ranges::count(values.output, '\n') == 3);
  const finished table = eval(file, little);
  BOOST_TEST(table.code == 0);
  BOOST_TEST(table.output.find("rel. RMS") != std::string::npos, table.output);
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong) {
  const temporary_folder folder;
  const finished line = eval(folder.write("texts.jsonl", texts() + "no\n"), {});
  BOOST_TEST(line.code == 1);
  BOOST_TEST(line.errors.find("texts.jsonl:3: not a JSON object") != std::string::npos,
             line.errors);
  BOOST_TEST(eval("/nowhere.jsonl", {}).code == 1);
  BOOST_TEST(eval(folder.write("t.jsonl", texts()), {"--hits", "1.5"}).code == 2);
  BOOST_TEST(eval(folder.write("t.jsonl", texts()), {"--modes", "quick"}).code == 2);
  BOOST_TEST(run(CEDAR_PROGRAM, {"eval"}).code == 2);
}

BOOST_AUTO_TEST_SUITE_END()
