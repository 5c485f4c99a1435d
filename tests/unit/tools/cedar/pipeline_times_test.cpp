// Goal: the times of decode steps add up, and each part lands where it belongs. Method: a trace
// made by hand for a plan of two processes, with round numbers.
#include "tools/cedar/pipeline_times.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "tests/support/temporary_folder.hpp"
#include "topology/document/document.hpp"

using namespace cedar;
using tools::pipeline_times;

namespace {

/// cedar-tiny over the topology file that comes with cedar: units scheduler, embedding, engram,
/// encoder on node front; decoder, head on back.
topology::plan two_processes() {
  const std::filesystem::path configs = std::filesystem::path(CEDAR_SOURCE_DIR) / "configs";
  const auto document = topology::read_document(configs / "topologies/two-process.yaml");
  BOOST_REQUIRE(document.has_value());
  const auto config = model::parse_config(configs / "models/cedar-tiny");
  BOOST_REQUIRE(config.has_value());
  auto plan = topology::make_plan(*document, *config);
  BOOST_REQUIRE(plan.has_value());
  return std::move(*plan);
}

/// Steps of a pipeline in which every hand-over takes 10 us, a hop 100, and units as long as their
/// names say here.
class made_up_run {
 public:
  /// `entries_wait`: us that the decoder waits for entries in the middle of a step.
  explicit made_up_run(std::int64_t entries_wait = 0) : entries_wait_(entries_wait) {}

  void step(std::uint64_t number) {
    message("scheduler -> embedding step_table", number, 40);
    now_ += 10;
    compute("embedding", number, 5);
    compute_beside("engram", number, 7);
    message("embedding -> encoder embedded", number, 256);
    now_ += 10;
    compute("encoder", number, 1000);
    message("encoder -> decoder activation", number, 1041, 3);
    now_ += 100;
    compute("decoder", number, 200);
    now_ += entries_wait_;
    compute("decoder", number, 300);
    message("decoder -> head head_input", number, 256);
    now_ += 10;
    compute("head", number, 50);
    message("head -> scheduler proposal", number, 20);
    now_ += 100;
  }
  std::vector<trace_process> trace() const { return {{"front", events_}}; }

 private:
  void message(const std::string& edge, std::uint64_t step, std::uint64_t bytes,
               std::int64_t wait = 0) {
    events_.push_back({trace_kind::message, edge, step, now_ - wait, wait, bytes, 0});
  }
  void compute_beside(const std::string& unit, std::uint64_t step, std::int64_t us) {
    events_.push_back({trace_kind::compute, unit, step, now_, us, 0, 1});
  }
  void compute(const std::string& unit, std::uint64_t step, std::int64_t us) {
    compute_beside(unit, step, us);
    now_ += us;
  }

  std::int64_t entries_wait_;
  std::int64_t now_ = 1'000'000;
  std::vector<trace_event> events_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(pipeline_times_of_a_trace)

BOOST_AUTO_TEST_CASE(a_step_is_computing_and_what_lies_between) {
  made_up_run run;
  for (std::uint64_t step = 5; step < 10; ++step) run.step(step);
  pipeline_times times;
  add_run(times, two_processes(), run.trace(), 2);

  BOOST_TEST(times.hops == (std::vector<std::string>{"encoder -> decoder activation",
                                                     "head -> scheduler proposal"}),
             boost::test_tools::per_element());
  // The first two of the five belong to the prompt. A step: the hand-overs, 230, and the units but
  // Engram, which works beside them.
  BOOST_TEST(times.step_us == std::vector<double>(3, 230 + 1555), boost::test_tools::per_element());
  BOOST_TEST(times.compute_us == std::vector<double>(3, 1562), boost::test_tools::per_element());
  BOOST_TEST(times.between_us == std::vector<double>(3, 223), boost::test_tools::per_element());
  BOOST_TEST(times.units.at("decoder").compute_us == std::vector<double>(3, 500),
             boost::test_tools::per_element());

  const tools::edge_times& activation = times.edges.at("encoder -> decoder activation");
  BOOST_TEST(activation.crosses);
  BOOST_TEST(activation.messages == 5U);
  BOOST_TEST(activation.bytes == 5U * 1041U);
  BOOST_TEST(activation.credit_wait_us == 15);
  BOOST_TEST(activation.delivery_us == std::vector<double>(3, 100),
             boost::test_tools::per_element());
  BOOST_TEST(!times.edges.at("decoder -> head head_input").crosses);
  BOOST_TEST(times.edges.at("decoder -> head head_input").delivery_us == std::vector<double>(3, 10),
             boost::test_tools::per_element());
  // Nobody takes the last proposal up.
  BOOST_TEST(
      times.edges.at("head -> scheduler proposal").delivery_us == std::vector<double>(2, 100),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_unit_that_waits_within_a_step_computes_in_stretches) {
  made_up_run run(70);
  for (std::uint64_t step = 1; step < 4; ++step) run.step(step);
  pipeline_times times;
  add_run(times, two_processes(), run.trace(), 1);
  BOOST_TEST(times.step_us == std::vector<double>(2, 230 + 70 + 1555),
             boost::test_tools::per_element());
  BOOST_TEST(times.compute_us == std::vector<double>(2, 1562), boost::test_tools::per_element());
  BOOST_TEST(times.units.at("decoder").compute_us == std::vector<double>(2, 500),
             boost::test_tools::per_element());
  // Until work began, not until it went on.
  BOOST_TEST(
      times.edges.at("encoder -> decoder activation").delivery_us == std::vector<double>(2, 100),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(runs_add_up_and_steps_with_gaps_are_left_out) {
  made_up_run run;
  for (std::uint64_t step = 1; step < 5; ++step) run.step(step);
  auto cut = run.trace();
  std::erase_if(cut[0].events, [](const trace_event& event) {
    return event.step == 3 && event.track == "decoder";
  });
  pipeline_times times;
  const topology::plan plan = two_processes();
  add_run(times, plan, run.trace(), 1);
  BOOST_TEST(times.step_us.size() == 3U);
  add_run(times, plan, cut, 1);
  BOOST_TEST(times.step_us.size() == 5U);
  BOOST_TEST(times.edges.at("encoder -> decoder activation").messages == 8U);
}

BOOST_AUTO_TEST_SUITE_END()
