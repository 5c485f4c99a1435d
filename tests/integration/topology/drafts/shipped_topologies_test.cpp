// Goal: in every topology that cedar ships, answers with drafts are those without, bit for bit, at
// every temperature, whoever drafts. Method: each file of configs/topologies whose model is there
// (the released one is not) with its nodes in this process, once with the model's drafter placed
// (beside the head, where the file places none) and once with a drafter that proposes random
// tokens; against the engine without drafts. Files for a model that reads images get prompts with
// images.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"
#include "tests/integration/support/golden_prompt.hpp"
#include "tests/support/golden_images.hpp"
#include "topology/launch/cluster.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

const std::filesystem::path folder = CEDAR_SOURCE_DIR "/configs/topologies";

/// Below `folder`.
std::vector<std::string> shipped_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    if (entry.path().extension() == ".yaml" && !name.starts_with("released/")) out.push_back(name);
  }
  std::ranges::sort(out);
  return out;
}

/// The model that the topologies of some files are for.
std::string model_of(const std::string& file) {
  return file.starts_with("images/") ? "tiny-vision" : "cedar-tiny";
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

/// How every second answer is sampled.
void vary(session::generation_request& one, std::size_t number) {
  one.new_tokens_max = 20;
  one.ignore_eos = true;
  one.want_logits = number == 1;
  if (number % 2 != 0) return;
  one.sampling.temperature = 0.8F;
  one.sampling.presence_penalty = 0.3F;
  one.sampling.seed = number;
}

/// Beginnings of recorded prompts, one of them in mode bounded.
std::vector<session::generation_request> text_requests() {
  std::vector<session::generation_request> out;
  for (const golden_prompt& prompt : golden_prompts("cedar-tiny")) {
    session::generation_request& one = out.emplace_back();
    for (const std::int64_t token : prompt.tokens)
      if (one.prompt.size() < 48) one.prompt.push_back(static_cast<token_id>(token));
    vary(one, out.size());
    if (out.size() == 3) one.mode = session::prefill_mode::bounded;
    if (out.size() == 4) break;
  }
  return out;
}

/// Recorded prompts with images and one without, each twice.
std::vector<session::generation_request> image_requests(const model::model_config& config) {
  std::vector<session::generation_request> out;
  for (const char* name : {"vl-one-image", "vl-two-images", "prompt-0033"}) {
    const golden_file file("tiny-vision/golden/" + std::string(name) + ".safetensors");
    for (const int times : {1, 2}) {
      auto [ids, images] = image_prompt_of(file, config);
      session::generation_request& one = out.emplace_back();
      one.prompt = std::move(ids);
      one.images = std::move(images);
      if (times == 2) one.mode = session::prefill_mode::bounded;
      vary(one, out.size());
    }
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

run run_on(session::generator& generator,
           const std::vector<session::generation_request>& requests) {
  run out;
  session::generation_sink sink;
  sink.on_row = [&](std::size_t request, const session::row_event& row) {
    out.rows.emplace(std::pair(request, row.position), row);
  };
  const auto used = generator.generate(requests, sink);
  BOOST_REQUIRE_MESSAGE(used, (used ? "" : used.error().message));
  for (const session::usage& one : *used) {
    out.drafted += one.drafted_tokens;
    out.accepted += one.accepted_tokens;
  }
  return out;
}

/// A model, what it is asked, and its answers without drafts.
struct plain_run {
  std::unique_ptr<stage::model_source> model;
  std::vector<session::generation_request> requests;
  run answers;

  explicit plain_run(const std::string& name) {
    auto opened = stage::model_source::open(checkpoint_of(name));
    BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
    model = std::move(*opened);
    requests = name == "tiny-vision" ? image_requests(model->config()) : text_requests();
    const auto backend = kernels::make_backend("cpu");
    const auto engine = local::local_engine::open(*model, *backend, {});
    BOOST_REQUIRE_MESSAGE(engine, (engine ? "" : engine.error().message));
    answers = run_on(**engine, requests);
  }
};

const plain_run& plain(const std::string& file) {
  static std::map<std::string, plain_run> by_model;
  const std::string name = model_of(file);
  return by_model.try_emplace(name, name).first->second;
}

struct cluster_run {
  run answers;
  std::optional<session::measured_costs> measured;
  std::size_t events_at_start = 0;  ///< of traces
};

cluster_run run_through(const std::string& file, const std::string& text, session::drafter* drafter,
                        std::optional<session::draft_setting> draft) {
  const temporary_folder work;
  topology::cluster_options options;
  options.trace_events_max = 1000;
  options.topology = work.write("t.yaml", text);
  options.model = checkpoint_of(model_of(file));
  options.drafter = drafter;
  options.draft = draft;
  topology::cluster cluster(options);
  const result<void> started = cluster.start();
  BOOST_REQUIRE_MESSAGE(started.has_value(), (started ? "" : started.error().message));
  cluster_run out;
  out.measured = cluster.measured();
  for (const topology::node_report& report : cluster.reports())
    out.events_at_start += report.events.size();
  out.answers = run_on(cluster, plain(file).requests);
  return out;
}

run through(const std::string& file, const std::string& text, session::drafter* drafter,
            std::optional<session::draft_setting> draft) {
  return run_through(file, text, drafter, draft).answers;
}

/// Whatever comes to its mind.
class random_drafter final : public session::drafter {
 public:
  explicit random_drafter(std::uint32_t vocabulary) : vocabulary_(vocabulary) {}

  result<std::vector<flow::draft>> draft_after(const flow::step_table&,
                                               const session::step_outcome& outcome) override {
    std::vector<flow::draft> out;
    for (const flow::draft_order& order : outcome.orders) {
      flow::draft& made = out.emplace_back(flow::draft{order.request, order.position, {}, {}});
      while (made.tokens.size() < order.tokens_max)
        made.tokens.push_back(static_cast<token_id>(random_() % vocabulary_));
    }
    return out;
  }

 private:
  std::uint32_t vocabulary_;
  std::mt19937_64 random_{17};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(shipped_topologies)

BOOST_DATA_TEST_CASE(give_the_plain_bits_with_the_models_drafter,
                     boost::unit_test::data::make(shipped_files()), file) {
  const run drafted =
      through(file, with_drafter(in_this_process(file)), nullptr, session::draft_setting{5});
  BOOST_TEST((drafted.rows == plain(file).answers.rows));
  BOOST_TEST_MESSAGE(drafted.drafted << " drafted tokens, " << drafted.accepted << " accepted");
  BOOST_TEST(drafted.accepted < drafted.drafted);
  // A drafter of random weights knows nothing of a backbone of random weights.
  if (model_of(file) == "cedar-tiny") BOOST_TEST(drafted.accepted > drafted.drafted / 5);
}

BOOST_DATA_TEST_CASE(give_the_plain_bits_with_random_drafts,
                     boost::unit_test::data::make(shipped_files()), file) {
  random_drafter drafter(plain(file).model->config().vocabulary);
  const run drafted = through(file, in_this_process(file), &drafter, session::draft_setting{});
  BOOST_TEST((drafted.rows == plain(file).answers.rows));
  BOOST_TEST(drafted.drafted > 200U);
}

BOOST_DATA_TEST_CASE(give_the_plain_bits_with_as_many_drafts_as_pay,
                     boost::unit_test::data::make(shipped_files()), file) {
  const cluster_run made = run_through(file, with_drafter(in_this_process(file)), nullptr,
                                       session::draft_setting{.automatic = true});
  BOOST_TEST((made.answers.rows == plain(file).answers.rows));
  BOOST_REQUIRE(made.measured);
  BOOST_TEST_MESSAGE("measured " << session::to_string(*made.measured));
  BOOST_TEST(made.measured->steps > 0U);
  BOOST_TEST(made.events_at_start == 0U);
}

// A file for another kind of model would have to be asked other things.
BOOST_AUTO_TEST_CASE(are_all_there) {
  std::set<std::string> models;
  for (const std::string& file : shipped_files()) models.insert(model_of(file));
  BOOST_TEST(models.size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
