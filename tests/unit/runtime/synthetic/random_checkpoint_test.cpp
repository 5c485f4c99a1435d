// Goal: random checkpoints are what their configuration implies, compute finite numbers, and repeat
// byte for byte; a failure leaves nothing. Method: layers of cedar-tiny's configuration.
#include "runtime/synthetic/random_checkpoint.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"
#include "runtime/synthetic/reduced_config.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace cedar;
using synthetic::checkpoint_contents;
using synthetic::write_random_checkpoint;
namespace fs = std::filesystem;

namespace {

const fs::path tiny = fs::path(CEDAR_SOURCE_DIR) / "configs/models/cedar-tiny";

checkpoint_contents contents(std::uint64_t seed, std::uint32_t vocabulary = 2048) {
  const auto config =
      synthetic::reduce_config({test::read_file(tiny / "config.json"), "cedar-tiny"},
                               {*synthetic::parse_layers("0-3,6-7,10"), 3, vocabulary, 50, 1681});
  BOOST_REQUIRE_MESSAGE(config.has_value(), config.error().message);
  return {*config, test::read_file(tiny / "tokenizer.json"), seed};
}

/// Files of a folder by name.
std::map<std::string, std::string> files(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::directory_iterator(folder))
    out[entry.path().filename()] = test::read_file(entry.path());
  return out;
}

/// Logits of a short prompt, all rows.
std::vector<float> logits(const fs::path& folder) {
  const auto backend = kernels::make_backend("reference");
  const auto source = stage::model_source::open(folder);
  BOOST_REQUIRE_MESSAGE(source.has_value(), source.error().message);
  const auto engine = local::local_engine::open(**source, *backend, {64, 1, 128});
  BOOST_REQUIRE_MESSAGE(engine.has_value(), engine.error().message);
  session::generation_request request;
  for (token_id token = 0; token < 40; ++token) request.prompt.push_back(token * 37 % 2000);
  request.prompt_logits = 40;
  request.want_logits = true;
  std::vector<float> out;
  const auto used =
      (*engine)->generate({request}, {[&](std::size_t, const session::row_event& row) {
                                        out.insert(out.end(), row.logits.begin(), row.logits.end());
                                      },
                                      {}});
  BOOST_REQUIRE_MESSAGE(used.has_value(), used.error().message);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(random_checkpoint)

BOOST_AUTO_TEST_CASE(opens_and_computes_finite_numbers_of_ordinary_size) {
  const test::temporary_folder folder;
  const auto written = write_random_checkpoint(folder.path() / "made", contents(7));
  BOOST_REQUIRE_MESSAGE(written.has_value(), written.error().message);
  BOOST_TEST(written->files == 1U);
  std::uint64_t bytes = 0;
  for (const auto& [name, text] : files(folder.path() / "made")) bytes += text.size();
  BOOST_TEST(written->bytes == bytes);
  const std::vector<float> values = logits(folder.path() / "made");
  BOOST_TEST_REQUIRE(values.size() == 40U * 2048U);
  double squares = 0;
  for (const float value : values) {
    BOOST_TEST_REQUIRE(std::isfinite(value));
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  // Rows of the head have length 1, what it is given is normed: logits of about 1.
  const double rms = std::sqrt(squares / static_cast<double>(values.size()));
  BOOST_TEST(rms > 0.25);
  BOOST_TEST(rms < 4);
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_bytes_and_another_one_others) {
  const test::temporary_folder folder;
  for (const auto& [name, seed] : {std::pair{"a", 7}, {"b", 7}, {"c", 8}})
    BOOST_TEST_REQUIRE(
        write_random_checkpoint(folder.path() / name, contents(static_cast<std::uint64_t>(seed)))
            .has_value());
  BOOST_TEST((files(folder.path() / "a") == files(folder.path() / "b")));
  BOOST_TEST((files(folder.path() / "a").at("model.safetensors") !=
              files(folder.path() / "c").at("model.safetensors")));
}

BOOST_AUTO_TEST_CASE(shards_hold_the_same_model) {
  const test::temporary_folder folder;
  checkpoint_contents small = contents(7);
  small.file_bytes_max = 200'000;
  BOOST_TEST_REQUIRE(write_random_checkpoint(folder.path() / "one", contents(7)).has_value());
  const auto written = write_random_checkpoint(folder.path() / "many", small);
  BOOST_TEST_REQUIRE(written.has_value());
  BOOST_TEST(written->files > 3U);
  BOOST_TEST(files(folder.path() / "many").contains("model.safetensors.index.json"));
  BOOST_TEST((logits(folder.path() / "one") == logits(folder.path() / "many")));
}

BOOST_AUTO_TEST_CASE(leaves_nothing_when_it_is_stopped) {
  const test::temporary_folder folder;
  std::stop_source stop;
  stop.request_stop();
  const auto written =
      write_random_checkpoint(folder.path() / "made", contents(7), stop.get_token());
  BOOST_TEST_REQUIRE(!written.has_value());
  BOOST_TEST((written.error().code == errc::cancelled));
  BOOST_TEST(!fs::exists(folder.path() / "made"));
}

BOOST_AUTO_TEST_CASE(refuses_a_folder_with_files_and_a_disk_without_room_and_leaves_nothing) {
  const test::temporary_folder folder;
  folder.write("used/file", "x");
  const auto used = write_random_checkpoint(folder.path() / "used", contents(7));
  BOOST_TEST_REQUIRE(!used.has_value());
  BOOST_TEST((used.error().code == errc::refused));
  BOOST_TEST(used.error().message.find("is not empty") != std::string::npos);
  BOOST_TEST(files(folder.path() / "used").size() == 1U);

  // Tokens whose embedding alone is larger than the disk; nothing is written to find that out.
  const std::uint64_t tokens = fs::space(folder.path()).available / 256 + 1;
  if (tokens >= 1U << 31) return;  // half a terabyte free: no configuration is too large for it
  const auto large = write_random_checkpoint(folder.path() / "large",
                                             contents(7, static_cast<std::uint32_t>(tokens)));
  BOOST_TEST_REQUIRE(!large.has_value());
  BOOST_TEST((large.error().code == errc::capacity));
  BOOST_TEST(large.error().message.find("do not fit") != std::string::npos);
  BOOST_TEST(!fs::exists(folder.path() / "large"));
}

BOOST_AUTO_TEST_SUITE_END()
