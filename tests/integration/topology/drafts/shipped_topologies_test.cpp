// Goal: in every topology that cedar ships, answers with drafts are those without, bit for bit, at
// every temperature, whoever drafts. Method: each file of configs/topologies with its nodes in this
// process, once with the model's drafter placed (beside the head, where the file places none) and
// once with a drafter that proposes random tokens; against the engine without drafts.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <sstream>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"
#include "tests/integration/support/golden_prompt.hpp"
#include "topology/launch/cluster.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

const std::filesystem::path folder = CEDAR_SOURCE_DIR "/configs/topologies";
const std::filesystem::path model_folder = CEDAR_SOURCE_DIR "/configs/models/cedar-tiny";

std::vector<std::string> shipped_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".yaml") out.push_back(entry.path().filename());
  std::ranges::sort(out);
  return out;
}

/// The file with all its nodes in this process.
std::string in_this_process(const std::string& file) {
  std::ostringstream read;
  read << std::ifstream(folder / file).rdbuf();
  std::string text = read.str();
  text = std::regex_replace(text, std::regex("\ntransport:[^\n]*"), "");
  text = std::regex_replace(text, std::regex("\n *start: join[^\n]*"), "");
  return text + "transport: {kind: loopback}\n";
}

std::string with_drafter(const std::string& text) {
  if (text.find("drafter:") != std::string::npos) return text;
  return std::regex_replace(text, std::regex("\n  head: (\\{device: [^}]*\\})"),
                            "\n  head: $1\n  drafter: $1");
}

/// Beginnings of recorded prompts, every second one sampled, one of them in mode bounded.
std::vector<session::generation_request> requests() {
  std::vector<session::generation_request> out;
  for (const golden_prompt& prompt : golden_prompts("cedar-tiny")) {
    session::generation_request& one = out.emplace_back();
    for (const std::int64_t token : prompt.tokens)
      if (one.prompt.size() < 48) one.prompt.push_back(static_cast<token_id>(token));
    one.new_tokens_max = 20;
    one.ignore_eos = true;
    one.want_logits = out.size() == 1;
    if (out.size() % 2 == 0) {
      one.sampling.temperature = 0.8F;
      one.sampling.presence_penalty = 0.3F;
      one.sampling.seed = out.size();
    }
    if (out.size() == 3) one.mode = session::prefill_mode::bounded;
    if (out.size() == 4) break;
  }
  return out;
}

struct answered {
  token_id token = 0;
  std::uint32_t log_probability = 0;  ///< its bits
  std::vector<std::uint32_t> logits;

  explicit answered(const session::row_event& row) : token(row.token) {
    std::memcpy(&log_probability, &row.log_probability, sizeof log_probability);
    logits.resize(row.logits.size());
    if (!logits.empty()) std::memcpy(logits.data(), row.logits.data(), row.logits.size_bytes());
  }
  friend bool operator==(const answered&, const answered&) = default;
};

struct run {
  std::map<std::pair<std::size_t, std::uint32_t>, answered> rows;  ///< by request and position
  std::uint32_t drafted = 0;
  std::uint32_t accepted = 0;
};

run run_on(session::generator& generator) {
  run out;
  session::generation_sink sink;
  sink.on_row = [&](std::size_t request, const session::row_event& row) {
    out.rows.emplace(std::pair(request, row.position), row);
  };
  const auto used = generator.generate(requests(), sink);
  BOOST_REQUIRE_MESSAGE(used, (used ? "" : used.error().message));
  for (const session::usage& one : *used) {
    out.drafted += one.drafted_tokens;
    out.accepted += one.accepted_tokens;
  }
  return out;
}

const run& plain() {
  static const run out = [] {
    const auto model = stage::model_source::open(model_folder);
    BOOST_REQUIRE_MESSAGE(model, (model ? "" : model.error().message));
    const auto backend = kernels::make_backend("cpu");
    const auto engine = local::local_engine::open(**model, *backend, {});
    BOOST_REQUIRE_MESSAGE(engine, (engine ? "" : engine.error().message));
    return run_on(**engine);
  }();
  return out;
}

run through(const std::string& text, session::drafter* drafter,
            std::optional<session::draft_setting> draft = {}) {
  const temporary_folder work;
  topology::cluster_options options;
  options.topology = work.write("t.yaml", text);
  options.model = model_folder;
  options.drafter = drafter;
  options.draft = draft;
  topology::cluster cluster(options);
  const result<void> started = cluster.start();
  BOOST_REQUIRE_MESSAGE(started.has_value(), (started ? "" : started.error().message));
  return run_on(cluster);
}

/// Whatever comes to its mind.
class random_drafter final : public session::drafter {
 public:
  result<std::vector<flow::draft>> draft_after(const flow::step_table&,
                                               const session::step_outcome& outcome) override {
    std::vector<flow::draft> out;
    for (const flow::draft_order& order : outcome.orders) {
      flow::draft& made = out.emplace_back(flow::draft{order.request, order.position, {}, {}});
      while (made.tokens.size() < order.tokens_max)
        made.tokens.push_back(static_cast<token_id>(random_() % 2000));
    }
    return out;
  }

 private:
  std::mt19937_64 random_{17};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(shipped_topologies)

BOOST_DATA_TEST_CASE(give_the_plain_bits_with_the_models_drafter,
                     boost::unit_test::data::make(shipped_files()), file) {
  const run drafted =
      through(with_drafter(in_this_process(file)), nullptr, session::draft_setting{5});
  BOOST_TEST((drafted.rows == plain().rows));
  BOOST_TEST_MESSAGE(drafted.drafted << " drafted tokens, " << drafted.accepted << " accepted");
  BOOST_TEST(drafted.accepted > drafted.drafted / 5);
  BOOST_TEST(drafted.accepted < drafted.drafted);
}

BOOST_DATA_TEST_CASE(give_the_plain_bits_with_random_drafts,
                     boost::unit_test::data::make(shipped_files()), file) {
  random_drafter drafter;
  const run drafted = through(in_this_process(file), &drafter, session::draft_setting{});
  BOOST_TEST((drafted.rows == plain().rows));
  BOOST_TEST(drafted.drafted > 200U);
}

BOOST_AUTO_TEST_SUITE_END()
