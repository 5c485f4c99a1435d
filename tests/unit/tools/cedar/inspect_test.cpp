// Goal: an inspection shows the published numbers and every difference. Method: the released
// configuration and the published list of its tensors, golden checkpoints, and a damaged copy.
#include "tools/cedar/inspect.hpp"

#include <CLI/CLI.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/temporary_folder.hpp"

namespace {

using cedar::tools::inspect_options;
using cedar::tools::run_inspect;
using nlohmann::json;

const std::filesystem::path models = std::filesystem::path(CEDAR_SOURCE_DIR) / "configs/models";
const std::filesystem::path topologies = models.parent_path() / "topologies";
const std::filesystem::path golden = std::filesystem::path(CEDAR_TEST_DATA) / "golden";

struct run {
  std::ostringstream out, problems;
  int exit_code;

  run(const std::filesystem::path& path, const inspect_options& options)
      : exit_code(run_inspect(path, options, out, problems)) {}
  run(const std::filesystem::path& path, bool as_json)
      : run(path, inspect_options{.json = as_json}) {}

  bool shows(const std::string& text) const { return out.str().find(text) != std::string::npos; }
  bool complains(const std::string& text) const {
    return problems.str().find(text) != std::string::npos;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(inspect)

BOOST_AUTO_TEST_CASE(shows_the_published_numbers_of_the_release) {
  for (const auto& path : {models / "released", models / "released/config.json"}) {
    const run text(path, false);
    BOOST_TEST(text.exit_code == 0);
    BOOST_TEST(text.problems.str() == "");
    for (const char* part :
         {"96,085", "510,286,023,000", "551,880,835,184", "196,613,849,600", "14,225,362,530",
          "485,268,480", "published: 552 B; 0.02 % less here", "published: 196 B; 0.31 % more here",
          "weights: none here", "890 bytes a token", "2,703,360 bytes a sequence",
          "after layers 0-1, 7, 13, 19\n"})
      BOOST_TEST_CONTEXT(part) {
        BOOST_TEST(text.shows(part));
      }
  }
}

BOOST_AUTO_TEST_CASE(shows_owner_selection_and_readers_of_each_layer) {
  const run text(models / "released", false);
  const auto line = [&](const std::string& first) {
    std::istringstream lines(text.out.str());
    for (std::string l; std::getline(lines, l);)
      if (l.starts_with("  " + first + " ")) {
        std::istringstream words(l);
        std::string joined;
        for (std::string word; words >> word;) joined += word + " ";
        return joined;
      }
    return std::string();
  };
  BOOST_TEST(line("1") == "1 window 0 - - - 0 - ");
  BOOST_TEST(line("14") == "14 full 2 14 14 - 1 14-19 ");
  BOOST_TEST(line("20") == "20 full 1 20 20 makes - 20-39 ");
  BOOST_TEST(line("24") == "24 reindex 1 20 24 uses - - ");
  BOOST_TEST(line("27") == "27 reuse 1 20 24 - - - ");
}

BOOST_AUTO_TEST_CASE(prints_the_same_as_json) {
  const run json(models / "released", true);
  BOOST_TEST(json.exit_code == 0);
  const auto root = nlohmann::json::parse(json.out.str());
  BOOST_TEST(root["total"]["tensors"] == 96085);
  BOOST_TEST(root["total"]["bytes"] == 510286023000);
  BOOST_TEST(root["total"]["parameters"] == 763205315794);
  BOOST_TEST(root["parts"]["backbone"]["parameters"] == 551880835184);
  BOOST_TEST(root["components"]["experts"]["tensors"] == 92160);
  BOOST_TEST(root["schedule"][24]["index_source"] == 24);
  BOOST_TEST(root["schedule"][0]["owner"].is_null());
  BOOST_TEST(root["architecture"]["global_kv_bytes_per_token"] == 890);
  BOOST_TEST(root["parts"]["backbone"]["parameters_published"] == 552000000000);
  BOOST_TEST(!root["parts"]["vision"].contains("parameters_published"));
  BOOST_TEST(root["weights"].is_null());
}

BOOST_AUTO_TEST_CASE(publishes_figures_of_the_release_only) {
  const run text(golden / "tiny-40", false);
  BOOST_TEST(!text.shows("published"));
}

BOOST_AUTO_TEST_CASE(shows_what_a_sequence_takes_of_the_caches) {
  const run text(models / "released", {.cache_positions = 65536});
  BOOST_TEST(text.exit_code == 0);
  for (const char* part : {"caches of a sequence of 65,536 positions", "58,327,040",
                           "2,560 pages of 22,784, 890.00 a position", "2,830,080"})
    BOOST_TEST(text.shows(part), part);
  const run as_json(models / "released", {.json = true, .cache_positions = 1000});
  const auto cache = json::parse(as_json.out.str())["cache"];
  BOOST_TEST(cache["positions"] == 1000);
  BOOST_TEST(cache["global_bytes"] == 22784 * (3 * 8 + 16));
  BOOST_TEST(as_json.problems.str() == "");
  const run capped(models / "cedar-tiny",
                   {.json = true, .cache_positions = 65536, .fewer_positions = true});
  BOOST_TEST_REQUIRE(capped.exit_code == 0, capped.problems.str());
  BOOST_TEST(json::parse(capped.out.str())["cache"]["positions"] == 2048);
  const run beyond(models / "released", {.cache_positions = 1U << 21});
  BOOST_TEST(beyond.exit_code == 1);
  BOOST_TEST(beyond.complains("beyond the 1048576 positions"));
  CLI::App app;
  int exit_code = -1;
  cedar::tools::add_inspect(app, exit_code);
  BOOST_CHECK_THROW(app.parse("inspect --context 5 /no/such/folder"), CLI::ParseError);
}

BOOST_AUTO_TEST_CASE(lists_every_tensor_of_the_release_with_its_place) {
  const run listed(
      models / "released",
      {.json = true, .tensors = true, .topology = topologies / "released/five-hosts.yaml"});
  BOOST_TEST_REQUIRE(listed.exit_code == 0, listed.problems.str());
  const auto root = json::parse(listed.out.str());
  // The published list, row by row, in both directions.
  const auto published = json::parse(
      cedar::test::read_file(std::filesystem::path(CEDAR_RELEASED_DATA) / "tensor_names.json"));
  std::map<std::string, json> rows;
  for (const auto& row : root["tensors"]) rows[row["name"]] = row;
  BOOST_TEST(root["tensors"].size() == 96085U);
  BOOST_TEST(published["tensors"].size() == 96085U);
  std::map<std::string, std::uint64_t> bytes_by_unit;
  const std::map<std::string, std::uint64_t> element = {
      {"F32", 4}, {"BF16", 2}, {"F8_E4M3", 1}, {"F8_E8M0", 1}, {"I8", 1}};
  for (const auto& row : published["tensors"]) {
    const auto found = rows.find(row[0]);
    BOOST_REQUIRE_MESSAGE(found != rows.end(), row);
    const json& seen = found->second;
    std::uint64_t bytes = element.at(row[1]);
    for (const std::uint64_t size : row[2]) bytes *= size;
    BOOST_REQUIRE_MESSAGE(
        seen["dtype"] == row[1] && seen["shape"] == row[2] && seen["bytes"] == bytes, seen);
    const std::string name = row[0];
    const bool shared = name == "embed.weight" || name == "head.weight";
    BOOST_REQUIRE_MESSAGE(seen["units"].size() == (shared ? 2U : 1U), seen);
    for (const std::string unit : seen["units"]) bytes_by_unit[unit] += bytes;
  }
  const json& placed = root["placement"];
  for (const auto& unit : placed["units"])
    BOOST_TEST(unit["bytes"] == bytes_by_unit[unit["unit"]], unit["unit"]);
  BOOST_TEST(placed["units"].size() == bytes_by_unit.size());
  BOOST_TEST(placed["units"][2] == (json{{"unit", "engram"},
                                         {"device", "tables-cpu"},
                                         {"node", "tables"},
                                         {"tensors", 4},
                                         {"parameters", 196613849600},
                                         {"bytes", 202758032400}}));
  BOOST_TEST(placed["replicas"].size() == 2U);
  BOOST_TEST(placed["not_placed"].empty());
  std::uint64_t tensors = placed["on_one_unit"]["tensors"];
  for (const auto& replica : placed["replicas"]) tensors += replica["tensors"].size();
  BOOST_TEST(tensors == 96085U);
}

BOOST_AUTO_TEST_CASE(names_what_a_topology_leaves_out) {
  const run seen(golden / "tiny-vision",
                 {.json = true, .topology = topologies / "two-process.yaml"});
  BOOST_TEST_REQUIRE(seen.exit_code == 0, seen.problems.str());
  const json left = json::parse(seen.out.str())["placement"]["not_placed"];
  BOOST_TEST_REQUIRE(left.contains("vision"));
  BOOST_TEST(left["vision"]["tensors"].get<std::uint64_t>() > 0U);
}

BOOST_AUTO_TEST_CASE(prints_places_for_a_person) {
  const run text(models / "cedar-tiny", {.tensors = true, .topology = topologies / "drafter.yaml"});
  BOOST_TEST_REQUIRE(text.exit_code == 0, text.problems.str());
  for (const char* part :
       {"placement by ",
        "  embedding                 1            262,144            524,288  "
        "front-cpu of front",
        "on 2 units", "embed.weight: embedding (front-cpu of front), drafter (side-cpu of side)",
        "layers.7.attn.wkv.scale", "attention: decoder (back-cpu of back)"})
    BOOST_TEST(text.shows(part), part << " is not in\n" << text.out.str());
  BOOST_TEST(!text.shows("not placed"));
  const run alone(models / "cedar-tiny", {.topology = topologies / "two-process.yaml"});
  BOOST_TEST(alone.shows("dspark: no unit of the file reads it"));
  BOOST_TEST(!alone.shows("layers.7.attn.wkv.scale"));
}

BOOST_AUTO_TEST_CASE(names_the_mistakes_of_a_topology) {
  const run other(models / "released", {.topology = topologies / "two-process.yaml"});
  BOOST_TEST(other.exit_code == 1);
  BOOST_TEST(other.complains("two-process.yaml:"));
  BOOST_TEST(other.out.str() == "");
  const run none(models / "released", {.topology = "/no/such.yaml"});
  BOOST_TEST(none.exit_code == 1);
  BOOST_TEST(none.complains("/no/such.yaml"));
}

BOOST_AUTO_TEST_CASE(compares_weights_with_the_configuration) {
  const run clean(golden / "tiny-40", false);
  BOOST_TEST(clean.exit_code == 0);
  BOOST_TEST(clean.shows("weights: 3 files, every tensor as the configuration implies"));

  const cedar::test::temporary_folder folder;
  for (const auto& file : std::filesystem::directory_iterator(golden / "tiny-40"))
    if (file.is_regular_file()) std::filesystem::copy(file, folder.path());
  std::filesystem::remove(folder.path() / "model-00002-of-00003.safetensors");
  const run partial(folder.path(), false);
  BOOST_TEST(partial.exit_code == 0);
  BOOST_TEST(partial.shows("2 files (1 more are not on this host)"));

  // Another checkpoint's configuration.
  for (const char* file : {"config.json", "tokenizer.json"})
    std::filesystem::copy(golden / "tiny-12" / file, folder.path(),
                          std::filesystem::copy_options::overwrite_existing);
  const run wrong(folder.path(), false);
  BOOST_TEST(wrong.exit_code == 1);
  BOOST_TEST(wrong.complains("embed.weight is [512, 64]"));
  BOOST_TEST(wrong.complains("extra: layers.12."));
  const run wrong_json(folder.path(), true);
  BOOST_TEST(wrong_json.exit_code == 1);
  BOOST_TEST(!nlohmann::json::parse(wrong_json.out.str())["weights"]["matches"].get<bool>());
}

BOOST_AUTO_TEST_CASE(names_every_problem_of_a_configuration) {
  const cedar::test::temporary_folder folder;
  auto config = nlohmann::json::parse(cedar::test::read_file(models / "released/config.json"));
  config["text_config"]["engram_num_embeddings"][0] = 384006169;
  folder.write("config.json", config.dump());
  const run rows(folder.path(), false);
  BOOST_TEST(rows.exit_code == 1);
  BOOST_TEST(rows.complains("384006169"));
  config["text_config"].erase("hidden_size");
  config["text_config"].erase("head_dim");
  folder.write("config.json", config.dump());
  const run keys(folder.path(), false);
  BOOST_TEST(keys.exit_code == 1);
  BOOST_TEST(keys.complains("hidden_size is missing"));
  BOOST_TEST(keys.complains("head_dim is missing"));
  BOOST_TEST(keys.out.str() == "");
  const run none(folder.path() / "no-such", false);
  BOOST_TEST(none.exit_code == 1);
}

BOOST_AUTO_TEST_CASE(a_truncated_shard_is_named) {
  const cedar::test::temporary_folder folder;
  for (const auto& file : std::filesystem::directory_iterator(golden / "tiny-12"))
    if (file.is_regular_file()) std::filesystem::copy(file, folder.path());
  std::filesystem::resize_file(folder.path() / "model.safetensors", 5000000);
  const run damaged(folder.path(), false);
  BOOST_TEST(damaged.exit_code == 1);
  BOOST_TEST(damaged.complains("model.safetensors: tensor \""));
}

BOOST_AUTO_TEST_CASE(is_a_subcommand) {
  CLI::App app;
  int exit_code = -1;
  cedar::tools::add_inspect(app, exit_code);
  app.parse("inspect /no/such/folder");
  BOOST_TEST(exit_code == 1);
  BOOST_CHECK_THROW(app.parse("inspect"), CLI::ParseError);
}

BOOST_AUTO_TEST_SUITE_END()
