// Goal: with vision among the actors, wherever it is and whatever overtakes what, prompts with
// images get the answers of one process, and nothing is left over. Method: seeded random
// interleavings of whole topologies (simulation.hpp) of tiny-vision with its recorded images, among
// requests without any; cancelled requests, requests that take each other's KV, messages and nodes
// that are lost.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <random>

#include "tests/sim/actors/run_checks.hpp"
#include "tests/support/golden_images.hpp"

using namespace cedar;
using namespace cedar::test;
using namespace std::chrono_literals;
using topology::edge_kind;
namespace data = boost::unit_test::data;

namespace {

const std::string limits = "limits: {rows_per_step: 12, requests: 3, context: 64, ";

const image_prompt& recorded(std::size_t which) {
  static const auto read = [](const std::string& name) {
    return image_prompt_of(golden_file("tiny-vision/golden/" + name + ".safetensors"),
                           vision_model().config());
  };
  static const image_prompt prompts[] = {read("vl-one-image"), read("vl-two-images")};
  return prompts[which % 2];
}

/// A recorded prompt behind some text.
void add_images(session::generation_request& to, std::size_t which, std::size_t text) {
  const image_prompt& more = recorded(which);
  to.prompt.resize(text, 9);
  to.images = more.images;
  for (flow::prompt_image& image : to.images) image.position += static_cast<std::uint32_t>(text);
  to.prompt.insert(to.prompt.end(), more.ids.begin(), more.ids.end());
}

/// Random ones, two of three with images.
std::vector<session::generation_request> requests_with_images(std::uint64_t seed,
                                                              std::size_t count) {
  std::vector<session::generation_request> out = longer_requests(seed, count);
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < count; ++i)
    if (i % 3 != 2) add_images(out[i], random() % 2, std::min(out[i].prompt.size(), random() % 9));
  return out;
}

void check_answers_of(const simulation& sim, const std::vector<request_id>& ids,
                      const std::vector<session::generation_request>& requests) {
  const expected_answers expected = local_answers(requests, sim.limits(), vision_model());
  check_answers(sim, ids, expected);
  for (std::size_t i = 0; i < ids.size(); ++i)
    BOOST_TEST(sim.finished.at(ids[i]).image_tokens == expected.used[i].image_tokens);
}

void run_and_compare(const std::string& topology, const std::string& steps, std::uint64_t seed,
                     bool small_windows) {
  const topology::plan plan = planned(topology, limits + steps);
  simulation sim(plan, {.seed = seed, .small_windows = small_windows});
  const auto requests = requests_with_images(seed, 5);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  sim.run();
  check_nothing_left(sim);
  check_answers_of(sim, *ids, requests);
}

const auto topologies = data::make(placements_of(seeing_names()));

}  // namespace

BOOST_AUTO_TEST_SUITE(images)

BOOST_DATA_TEST_CASE(any_interleaving_gives_the_answers_of_one_process,
                     topologies* data::xrange(1, 1 + seeds_count(5)), topology, seed) {
  run_and_compare(topology, "steps_in_flight: 3}\n", static_cast<std::uint64_t>(seed), false);
}

BOOST_DATA_TEST_CASE(windows_of_one_message_give_the_answers_of_one_process,
                     topologies* data::xrange(100, 100 + seeds_count(4)), topology, seed) {
  run_and_compare(topology, "steps_in_flight: 4}\n", static_cast<std::uint64_t>(seed), true);
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_DATA_TEST_CASE(vision_that_lags_behind_gives_the_answers_of_one_process,
                     topologies* data::make({false, true}), topology, small_windows) {
  const topology::plan plan = planned(topology, limits + "steps_in_flight: 3}\n");
  simulation sim(plan, {.seed = 7, .small_windows = small_windows});
  const auto requests = requests_with_images(7, 6);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  // Steps without images go on without it, until its credit is used up.
  run_with_a_laggard(sim, "vision");
  check_nothing_left(sim);
  check_answers_of(sim, *ids, requests);
}

BOOST_DATA_TEST_CASE(cancelled_requests_leave_no_image,
                     topologies* data::xrange(1, 1 + seeds_count(5)), topology, seed) {
  const topology::plan plan = planned(topology, limits + "steps_in_flight: 3}\n");
  simulation sim(plan, {.seed = static_cast<std::uint64_t>(seed), .small_windows = seed % 2 == 0});
  const auto requests = requests_with_images(static_cast<std::uint64_t>(seed), 6);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  run_and_cancel(sim, *ids, static_cast<std::uint64_t>(seed), 600);
  check_nothing_left(sim);
  const expected_answers expected = local_answers(requests, sim.limits(), vision_model());
  for (std::size_t i = 1; i < requests.size(); i += 2)
    BOOST_REQUIRE((sim.rows[(*ids)[i]] == expected.rows[i]));
}

// KV for three requests of four: some are freed with their images and begin anew.
BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_DATA_TEST_CASE(requests_that_lose_their_kv_bring_their_images_again, topologies, topology) {
  const topology::plan plan =
      planned(topology,
              "limits: {rows_per_step: 64, requests: 4, context: 256, kv_positions: 384, "
              "prefill_rows: 40, steps_in_flight: 3}\n");
  simulation sim(plan, {.seed = 11});
  auto requests = longer_requests(11, 5);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].forced.clear();
    add_images(requests[i], i, 122 - recorded(i).ids.size());
    requests[i].prompt.resize(122 + i, 9);
    requests[i].new_tokens_max = 12;
  }
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE_MESSAGE(ids, (ids ? "" : ids.error().message));
  sim.run();
  check_nothing_left(sim);
  session::scheduler_limits plenty = sim.limits();
  plenty.kv_granules = std::numeric_limits<std::uint64_t>::max();
  const expected_answers expected = local_answers(requests, plenty, vision_model());
  std::uint32_t preemptions = 0;
  for (std::size_t i = 0; i < ids->size(); ++i) {
    BOOST_REQUIRE((sim.rows.at((*ids)[i]) == expected.rows[i]));
    preemptions += sim.finished.at((*ids)[i]).preemptions;
  }
  BOOST_TEST(preemptions > 0U);
}

BOOST_DATA_TEST_CASE(a_lost_message_is_noticed_by_the_deadline_of_its_step,
                     data::make({edge_kind::image, edge_kind::image_rows}) * topologies, kind,
                     topology) {
  const topology::plan plan =
      planned(topology, limits + "steps_in_flight: 1}\ndeadlines_ms: {step: 700}\n");
  simulation sim(plan, {.seed = 1, .lost = std::pair(kind, 0U)});
  session::generation_request request;
  add_images(request, 0, 3);
  request.new_tokens_max = 5;
  request.ignore_eos = true;
  const auto ids = sim.submit({request});
  BOOST_REQUIRE(ids);
  sim.run();
  BOOST_TEST(sim.given_up_for.empty());
  sim.advance(700ms);
  sim.run();
  BOOST_REQUIRE_EQUAL(sim.given_up_for.size(), 1U);
  BOOST_TEST(sim.given_up_for[0].what.message == "no proposal within 700 ms (deadlines_ms.step)");
  BOOST_TEST((sim.given_up == *ids));
  // The next epoch begins without any image.
  sim.recover();
  const auto again = sim.submit({request});
  BOOST_REQUIRE(again);
  sim.run();
  BOOST_TEST(sim.image_rows() == 0U);
  BOOST_REQUIRE((sim.rows.at(again->front()) ==
                 local_answers({request}, sim.limits(), vision_model()).rows[0]));
}

BOOST_DATA_TEST_CASE(a_node_of_vision_that_dies_comes_back, data::xrange(1, 1 + seeds_count(8)),
                     seed) {
  const topology::plan plan = planned("seeing three nodes", limits + "steps_in_flight: 3}\n");
  simulation sim(plan, {.seed = static_cast<std::uint64_t>(seed)});
  const auto requests = requests_with_images(static_cast<std::uint64_t>(seed), 4);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  for (int action = 0; action < 60 * seed && sim.act(); ++action) continue;
  sim.kill("eye");
  sim.run();
  BOOST_REQUIRE(sim.failed());
  sim.recover();
  sim.run();
  const auto again = sim.submit(requests);
  BOOST_REQUIRE(again);
  sim.run();
  BOOST_TEST(sim.image_rows() == 0U);
  BOOST_TEST(sim.sequences() == 0U);
  const expected_answers expected = local_answers(requests, sim.limits(), vision_model());
  for (std::size_t i = 0; i < requests.size(); ++i)
    BOOST_REQUIRE((sim.rows.at((*again)[i]) == expected.rows[i]));
}

BOOST_AUTO_TEST_SUITE_END()
