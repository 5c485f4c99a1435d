// Goal: `cedar run` asks about images, with the same answer from every topology that places vision,
// and says which file is none. Method: tiny-vision and files of tests/data/image, by both ways to
// give them; the prompt's tokens counted by hand; topologies against one process.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "runtime/text/prompt_encoding.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"

using namespace cedar;
using namespace cedar::test;
using nlohmann::json;

namespace {

const std::string images = CEDAR_TEST_DATA "/image/";

finished ask(const std::vector<std::string>& more, const std::string& model = "tiny-vision") {
  std::vector<std::string> arguments{"run",          "-m", checkpoint_of(model).string(),
                                     "--max-tokens", "6",  "--ignore-eos"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::run(CEDAR_PROGRAM, arguments);
}

finished ask_about(const std::vector<std::string>& files,
                   const std::string& model = "tiny-vision") {
  std::vector<std::string> arguments{"-p", "What is it?"};
  for (const std::string& file : files) arguments.insert(arguments.end(), {"--image", file});
  return ask(arguments, model);
}

void check_refused(const finished& ran, const std::string& text) {
  BOOST_TEST(ran.code == 1);
  BOOST_TEST(ran.output == "");
  BOOST_TEST(contains(ran.errors, text), ran.errors);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(images_of_a_command_line)

BOOST_AUTO_TEST_CASE(are_part_of_the_prompt) {
  const temporary_folder folder;
  const std::string png = images + "rgb.png";
  const std::string jpeg = images + "baseline.jpg";
  const json lines[] = {{{"prompt", "What is it?"}, {"images", {png}}},
                        {{"prompt", "What is it?"}, {"images", {png, jpeg}}},
                        {{"prompt", "\n\nWhat is it?"}, {"chat", true}}};
  std::string text;
  for (const json& line : lines) text += line.dump() + "\n";
  const finished ran = ask({"--prompts", folder.write("p.jsonl", text).string()});
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
  std::vector<json> answers;
  std::istringstream output(ran.output);
  for (std::string line; std::getline(output, line);) answers.push_back(json::parse(line));
  BOOST_REQUIRE_EQUAL(answers.size(), 3U);
  const auto used = [&](std::size_t i, const char* key) {
    return answers[i].at("usage").at(key).get<std::uint32_t>();
  };
  // 23 x 17 is enlarged to 32 x 24, 3 x 2 patches and one cell: start, cell, newline, end.
  BOOST_TEST(used(0, "image_tokens") == 4U);
  BOOST_TEST(used(0, "prompt_tokens") == used(2, "prompt_tokens") + 4);
  BOOST_TEST(used(2, "image_tokens") == 0U);
  BOOST_TEST(used(1, "image_tokens") > 4U);

  for (const auto& [files, answer] :
       {std::pair{std::vector{png}, answers[0]}, std::pair{std::vector{png, jpeg}, answers[1]}}) {
    const finished alone = ask_about(files);
    BOOST_REQUIRE_MESSAGE(alone.code == 0, alone.errors);
    BOOST_TEST(alone.output == answer.at("text").get<std::string>() + "\n");
  }
}

BOOST_AUTO_TEST_CASE(are_refused_by_the_name_of_their_file) {
  const temporary_folder folder;
  const std::string text = folder.write("t.png", "hello").string();
  check_refused(ask_about({text}), text + ": the image is not a PNG, JPEG or WebP file");
  check_refused(ask_about({images + "rgb.png", folder.path() / "none.png"}),
                "none.png: cannot read");
  check_refused(ask_about({folder.path().string()}), "cannot read");
  check_refused(ask_about({images + "line.png"}), "line.png: the image of 20000 x 1 pixels");
  check_refused(ask_about({images + "rgb.png"}, "cedar-tiny"), "nobody here reads images");
  const std::string lines = folder.write("p.jsonl", R"({"prompt": "a", "images": [1]})").string();
  check_refused(ask({"--prompts", lines}), "p.jsonl:1: images must be a list of file names");
}

/// Questions about one image, two and none, greedy and sampled.
std::string questions(const temporary_folder& folder) {
  std::string text;
  for (const double temperature : {0.0, 0.9})
    for (const std::vector<std::string>& files :
         {std::vector<std::string>{"rgb.png"}, {"baseline.jpg", "rgb.png"}, {}}) {
      json line = {
          {"prompt", "What is it?"}, {"temperature", temperature}, {"seed", 7}, {"max_tokens", 20}};
      for (const std::string& file : files) line["images"].push_back(images + file);
      text += line.dump() + "\n";
    }
  return folder.write("p.jsonl", text).string();
}

BOOST_AUTO_TEST_CASE(get_the_same_answers_from_every_topology) {
  const temporary_folder folder;
  const std::string prompts = questions(folder);
  const finished alone = ask({"--prompts", prompts});
  BOOST_REQUIRE_MESSAGE(alone.code == 0, alone.errors);
  const auto texts = [](const std::string& output) {
    std::vector<std::string> out;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);)
      out.push_back(json::parse(line).at("text").get<std::string>());
    return out;
  };
  BOOST_TEST(texts(alone.output).size() == 6U);
  // Vision away from the embedding, beside it, on a node of its own; spans cut by steps of 5 rows.
  const std::string few_rows = "limits: {rows_per_step: 5, requests: 3, context: 256}";
  for (const topology_options& where : {
           topology_options{.vision = "node1", .more = few_rows},
           topology_options{.cuts = {}, .vision = "node0"},
           topology_options{.drafter = "node0", .vision = "eye", .more = few_rows},
       }) {
    const std::string topology = folder.write("t.yaml", topology_text(where)).string();
    const finished ran = ask({"--prompts", prompts, "--topology", topology});
    BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
    BOOST_TEST(texts(ran.output) == texts(alone.output), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(are_refused_where_no_tower_is_placed) {
  const temporary_folder folder;
  const std::string topology = folder.write("t.yaml", topology_text({.loopback = true})).string();
  check_refused(ask({"-p", "a", "--image", images + "rgb.png", "--topology", topology}),
                "the topology places none; add vision: {device: DEVICE} to its units");
}

BOOST_AUTO_TEST_SUITE_END()
