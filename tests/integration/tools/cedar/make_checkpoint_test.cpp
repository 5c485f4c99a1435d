// Goal: `cedar make-checkpoint` makes a folder that the other commands take as a checkpoint, and
// says what is wrong otherwise. Method: small ones, inspected and run; one wrong input each.
#include <signal.h>
#include <sys/resource.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace cedar::test;
using nlohmann::json;
namespace data = boost::unit_test::data;

namespace {

struct workplace {
  temporary_folder folder;
  std::string out = (folder.path() / "made").string();

  finished make(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"make-checkpoint", "-o", out});
    return run(CEDAR_PROGRAM, arguments);
  }
  /// Refused for a reason that says `parts`; nothing was made.
  void check_refused(const std::vector<std::string>& arguments, int code,
                     const std::vector<std::string>& parts) const {
    const finished ran = make(arguments);
    BOOST_TEST(ran.code == code);
    for (const std::string& part : parts)
      BOOST_TEST(contains(ran.errors, part), "no \"" << part << "\" in: " << ran.errors);
    BOOST_TEST(!std::filesystem::exists(out));
  }
};

const std::string tiny = checkpoint_of("cedar-tiny").string();

}  // namespace

BOOST_AUTO_TEST_SUITE(command_make_checkpoint)

BOOST_AUTO_TEST_CASE(makes_what_inspect_and_run_take) {
  const workplace work;
  const finished made = work.make({"--like", tiny, "--layers", "0-3,6-8", "--experts", "4"});
  BOOST_TEST_REQUIRE(made.code == 0, made.errors);
  BOOST_TEST(contains(made.output, " in 1 file, "), made.output);
  BOOST_TEST(contains(made.output, "with draft blocks, without vision"), made.output);

  const finished inspected = run(CEDAR_PROGRAM, {"inspect", "--json", work.out});
  BOOST_TEST_REQUIRE(inspected.code == 0, inspected.errors);
  const json seen = json::parse(inspected.output);
  BOOST_TEST(seen.at("weights").at("matches") == true);
  BOOST_TEST(seen.at("architecture").at("layers") == 7);
  BOOST_TEST(seen.at("architecture").at("experts") == 4);
  BOOST_TEST(seen.at("architecture").at("width") == 128);
  BOOST_TEST(seen.at("architecture").at("dspark_blocks") == 3);
  BOOST_TEST(seen.at("warnings").empty());

  const finished answered = run(
      CEDAR_PROGRAM, {"run", "-m", work.out, "-p", "Once", "--max-tokens", "5", "--ignore-eos"});
  BOOST_TEST(answered.code == 0, answered.errors);
  const finished drafted = run(CEDAR_PROGRAM, {"run", "-m", work.out, "-p", "Once", "--max-tokens",
                                               "5", "--ignore-eos", "--draft", "fixed:5"});
  BOOST_TEST(drafted.code == 0, drafted.errors);
  BOOST_TEST(contains(drafted.errors, "tokens drafted"), drafted.errors);
  BOOST_TEST(drafted.output == answered.output);

  const finished again = work.make({"--like", tiny, "--layers", "0", "--experts", "4"});
  BOOST_TEST(again.code == 1);
  BOOST_TEST(contains(again.errors, "is not empty"), again.errors);
}

BOOST_AUTO_TEST_CASE(makes_a_model_that_sees) {
  const workplace work;
  const finished made = work.make(
      {"--like", checkpoint_of("tiny-vision").string(), "--layers", "0-2", "--experts", "4"});
  BOOST_TEST_REQUIRE(made.code == 0, made.errors);
  BOOST_TEST(contains(made.output, "with draft blocks, with vision"), made.output);
  const std::string image = std::string(CEDAR_TEST_DATA) + "/image/rgb.png";
  const std::vector<std::string> ask = {"run", "-m",          work.out,       "--image",
                                        image, "-p",          "What is this", "--max-tokens",
                                        "4",   "--ignore-eos"};
  const finished seen = run(CEDAR_PROGRAM, ask);
  BOOST_TEST(seen.code == 0, seen.errors);
  std::filesystem::remove_all(work.out);

  const finished plain = work.make({"--like", checkpoint_of("tiny-vision").string(), "--layers",
                                    "0-2", "--experts", "4", "--no-vision", "--no-drafts"});
  BOOST_TEST_REQUIRE(plain.code == 0, plain.errors);
  BOOST_TEST(contains(plain.output, "without draft blocks, without vision"), plain.output);
  const finished blind = run(CEDAR_PROGRAM, ask);
  BOOST_TEST(blind.code == 1);
  BOOST_TEST(contains(blind.errors, "vision"), blind.errors);
}

/// The largest that any process was that this one has waited for, bytes.
std::uint64_t largest_child() {
  rusage used{};
  BOOST_REQUIRE(getrusage(RUSAGE_CHILDREN, &used) == 0);
  return static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
}

BOOST_AUTO_TEST_CASE(makes_and_runs_released_widths_without_a_second_copy) {
  const workplace work;
  const finished made =
      work.make({"--layers", "0-2", "--experts", "6", "--no-vision", "--no-drafts"});
  BOOST_TEST_REQUIRE(made.code == 0, made.errors);
  std::uint64_t weights = 0;
  for (const auto& file : std::filesystem::directory_iterator(work.out))
    weights += file.file_size();
  BOOST_TEST(weights > 500'000'000U);
  BOOST_TEST(largest_child() < weights + weights / 4);
  // A copy beside the mapped file would be twice the weights.
  const finished answered = run(
      CEDAR_PROGRAM, {"run", "-m", work.out, "-p", "Once", "--max-tokens", "2", "--ignore-eos"});
  BOOST_TEST(answered.code == 0, answered.errors);
  BOOST_TEST(largest_child() < weights + weights / 4);
}

/// The first file that lies in `folder` within our patience; empty if none does.
std::filesystem::path first_file(const std::filesystem::path& folder) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) return entry.path();
    std::this_thread::sleep_for(1ms);
  }
  return {};
}

BOOST_DATA_TEST_CASE(leaves_nothing_when_it_is_interrupted, data::make({SIGINT, SIGTERM, SIGHUP}),
                     number) {
  // A layer of released widths: it is being written for long enough to be met.
  const workplace work;
  program making(CEDAR_PROGRAM,
                 {"make-checkpoint", "-o", work.out, "--layers", "0", "--experts", "8"});
  const std::filesystem::path temporary = first_file(work.out);
  BOOST_TEST_REQUIRE(contains(temporary.filename().string(), ".safetensors."));
  making.signal(number);
  BOOST_TEST(making.wait_end());
  BOOST_TEST(making.code() == 130);
  BOOST_TEST(contains(making.errors(), "cedar: interrupted"), making.errors());
  BOOST_TEST(!std::filesystem::exists(work.out));
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong) {
  const workplace work;
  work.check_refused({"--layers", "0,3", "--experts", "8"}, 1,
                     {"layer 3 reads the global KV of layer 2: choose that layer too"});
  work.check_refused({"--layers", "0-", "--experts", "8"}, 1, {"--layers", "like 0-3,20-21"});
  work.check_refused({"--layers", "0", "--experts", "2"}, 1, {"num_experts_per_tok 6"});
  work.check_refused({"--layers", "0", "--experts", "8", "--vocabulary", "2047"}, 1,
                     {"--vocabulary 2047 is less than the 2048 tokens"});
  work.check_refused({"--like", "/nowhere", "--layers", "0", "--experts", "8"}, 1,
                     {"--like", "/nowhere"});
  work.check_refused({"--layers", "0", "--experts", "8", "--tokenizer", "/nowhere"}, 1,
                     {"--tokenizer", "/nowhere"});
  work.check_refused({"--layers", "0"}, 2, {"--experts"});
}

BOOST_AUTO_TEST_SUITE_END()
