// Goal: whatever the network does to frames, and whichever process dies, nobody ever gets a wrong
// row; a request ends with the right answer, or with a fault that has a name; and the pipeline
// serves again. Method: whole topologies (simulation.hpp) over ports that drop, double, swap,
// corrupt and delay frames and disconnect, by seed; every row is compared with local_engine's. What
// a failure gave up is asked for again. A seed is a run: a failing one prints the command that runs
// it alone.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <map>
#include <numeric>
#include <random>
#include <set>

#include "tests/sim/actors/simulation.hpp"

using namespace cedar;
using namespace cedar::test;
using namespace std::chrono_literals;

namespace {

const std::string sections =
    "limits: {rows_per_step: 8, requests: 3, context: 64, steps_in_flight: 3}\n"
    "deadlines_ms: {step: 700}\n";

struct misbehaviour {
  transport::fault_plan of_ports;
  int kills = 0;  ///< of processes, each some time after the pipeline began to serve
};

struct outcome {
  int failures = 0;
  transport::fault_counts counts;
};

/// With a drafter, every second run drafts as its policy says.
std::string drafts_of(const std::string& topology, std::uint64_t seed) {
  return topology.starts_with("drafted") && seed % 2 == 0 ? "draft: auto\n" : "";
}

/// Requests over a pipeline that fails and comes back.
class persistent_run {
 public:
  persistent_run(const std::string& topology, std::uint64_t seed, const misbehaviour& trouble)
      : plan_(planned(topology, sections + drafts_of(topology, seed))),
        sim_(plan_, {.seed = seed, .faults = trouble.of_ports}),
        random_(seed),
        kills_left_(trouble.kills),
        requests_(plan_.limits().draft_tokens > 0 ? longer_requests(seed, 5)
                                                  : random_requests(seed, 5)),
        expected_(local_answers(requests_, sim_.limits())) {}

  outcome run() {
    ask(every_request());
    run_to_an_end();
    // The first end is the one that the case is about; then the network misbehaves a while longer.
    for (int round = 0; finished_.size() < requests_.size(); ++round) {
      BOOST_REQUIRE_LT(round, 200);
      if (round == 4) calm();
      come_back();
      run_to_an_end();
    }
    calm();
    come_back();  // a lost verdict or credit need not have failed anything yet
    finished_.clear();
    ask(every_request());
    run_to_an_end();
    BOOST_TEST(!sim_.failed());
    BOOST_TEST(finished_.size() == requests_.size());
    BOOST_TEST(sim_.credit_is_whole());
    BOOST_TEST(sim_.pages_in_use() == 0U);
    BOOST_TEST(sim_.sequences() == 0U);
    BOOST_TEST(sim_.violations.empty(), (sim_.violations.empty() ? "" : sim_.violations[0]));
    return {static_cast<int>(sim_.given_up_for.size()), sim_.fault_counts()};
  }

 private:
  std::vector<std::size_t> every_request() const {
    std::vector<std::size_t> all(requests_.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  void ask(const std::vector<std::size_t>& indices) {
    std::vector<session::generation_request> asked;
    for (const std::size_t index : indices) asked.push_back(requests_[index]);
    const auto ids = sim_.submit(asked);
    BOOST_REQUIRE(ids);
    for (std::size_t i = 0; i < ids->size(); ++i) open_[ids->at(i)] = indices[i];
  }

  /// Until all are answered or the pipeline has failed, and nothing moves.
  void run_to_an_end() {
    const std::size_t until_kill = random_() % 500;
    for (std::size_t actions = 0; sim_.act(); ++actions) {
      BOOST_REQUIRE_LT(actions, 1'000'000U);
      if (kills_left_ == 0 || actions != until_kill) continue;
      --kills_left_;
      const auto& nodes = plan_.nodes();
      const auto& victim = nodes[1 + random_() % (nodes.size() - 1)];
      if (victim.id != plan_.client().id) sim_.kill(victim.name);
    }
    if (!sim_.failed() && open_.size() > answered()) {
      sim_.advance(plan_.deadlines().step);
      sim_.run();
    }
    check();
  }

  std::size_t answered() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        open_, [&](const auto& entry) { return sim_.finished.contains(entry.first); }));
  }

  /// What has happened so far is a beginning of the right answers; and who failed had a reason.
  void check() {
    for (auto at = open_.begin(); at != open_.end();) {
      const auto& [id, index] = *at;
      const auto& rows = sim_.rows[id];
      const auto& expected = expected_.rows[index];
      BOOST_REQUIRE_LE(rows.size(), expected.size());
      BOOST_REQUIRE(std::equal(rows.begin(), rows.end(), expected.begin()));
      const bool finished = sim_.finished.contains(id);
      const bool given_up = std::ranges::find(sim_.given_up, id) != sim_.given_up.end();
      BOOST_REQUIRE(!(finished && given_up));
      if (finished) {
        BOOST_REQUIRE_EQUAL(rows.size(), expected.size());
        finished_.insert(index);
      }
      if (given_up) lost_.push_back(index);
      at = finished || given_up ? open_.erase(at) : std::next(at);
    }
    // Nobody hangs: what is open waits for the pipeline to come back.
    if (!sim_.failed()) BOOST_REQUIRE(open_.empty());
    for (const actors::fault& why : sim_.given_up_for) {
      BOOST_REQUIRE(!why.where.empty());
      BOOST_REQUIRE(!why.what.message.empty());
    }
  }

  void come_back() {
    if (sim_.failed()) {
      const auto refused = sim_.submit(requests_);
      BOOST_REQUIRE(!refused);
      const std::string& why = sim_.given_up_for.back().what.message;
      BOOST_REQUIRE(refused.error().message.find(why) != std::string::npos);
    }
    sim_.recover();
    const std::vector<std::size_t> again = std::exchange(lost_, {});
    if (!again.empty()) ask(again);
  }

  void calm() {
    sim_.calm();
    kills_left_ = 0;
  }

  topology::plan plan_;
  simulation sim_;
  std::mt19937_64 random_;
  int kills_left_;
  std::vector<session::generation_request> requests_;
  expected_answers expected_;
  std::map<request_id, std::size_t> open_;  ///< which request each is
  std::set<std::size_t> finished_;
  std::vector<std::size_t> lost_;  ///< to be asked again
};

outcome run_over(const std::string& topology, std::uint64_t seed, const misbehaviour& trouble) {
  return persistent_run(topology, seed, trouble).run();
}

struct kind_of_fault {
  const char* name;
  misbehaviour trouble;

  friend std::ostream& operator<<(std::ostream& out, const kind_of_fault& one) {
    return out << one.name;
  }
};

const std::vector<kind_of_fault> kinds{
    {"drop", {{.drop = 0.02}}},
    {"reorder", {{.reorder = 0.02}}},
    {"corrupt", {{.corrupt = 0.02}}},
    {"delay", {{.delay = 0.02, .delay_max = 1ms}}},
    {"disconnect", {{.disconnect = 0.01}}},
    {"kill", {{}, 3}},
    {"everything",
     {{.drop = 0.004,
       .duplicate = 0.1,
       .reorder = 0.004,
       .corrupt = 0.004,
       .delay = 0.01,
       .disconnect = 0.004,
       .delay_max = 1ms},
      1}},
};

constexpr int seeds = 200;

std::string program() {
  return boost::unit_test::framework::master_test_suite().argv[0];
}

/// Failures of the seeds that were run, by kind.
std::map<std::string, int> failures_of;
int seeds_run = 0;

}  // namespace

BOOST_AUTO_TEST_SUITE(faults)

BOOST_DATA_TEST_CASE(doubled_frames_change_nothing,
                     boost::unit_test::data::xrange(1, 1 + seeds_count(8)), seed) {
  for (const std::string topology : {"two nodes", "three nodes"}) {
    const outcome ended =
        run_over(topology, static_cast<std::uint64_t>(seed), {{.duplicate = 0.4}});
    BOOST_TEST(ended.failures == 0);
    BOOST_TEST(ended.counts.duplicated > 10U);
  }
}

BOOST_DATA_TEST_CASE(the_pipeline_comes_back_and_no_row_is_wrong,
                     boost::unit_test::data::xrange(0, seeds_count(seeds)), seed) {
  const auto number = static_cast<std::size_t>(seed);
  const kind_of_fault& kind = kinds[number % kinds.size()];
  // All but "one node".
  const std::string& topology =
      topology_names()[1 + number / kinds.size() % (topology_names().size() - 1)];
  BOOST_TEST_CONTEXT(kind << " over " << topology << "; again: " << program()
                          << " --run_test=faults/the_pipeline_comes_back_and_no_row_is_wrong/_"
                          << seed) {
    failures_of[kind.name] += run_over(topology, 1 + number, kind.trouble).failures;
    ++seeds_run;
  }
}

// After the one above, or it shows nothing.
BOOST_AUTO_TEST_CASE(every_kind_of_fault_was_met) {
  if (seeds_run < seeds) return;
  for (const kind_of_fault& kind : kinds) {
    BOOST_TEST_MESSAGE(kind << ": " << failures_of[kind.name] << " failures");
    BOOST_TEST(failures_of[kind.name] > 0, kind.name);
  }
}

BOOST_DATA_TEST_CASE(with_a_drafter_it_comes_back_too,
                     boost::unit_test::data::xrange(0, seeds_count(28)), seed) {
  const auto number = static_cast<std::size_t>(seed);
  const kind_of_fault& kind = kinds[number % kinds.size()];
  const std::string& topology = drafted_names()[number / kinds.size() % drafted_names().size()];
  BOOST_TEST_CONTEXT(kind << " over " << topology)
  run_over(topology, 1 + number, kind.trouble);
}

BOOST_AUTO_TEST_CASE(a_seed_is_a_run) {
  const auto run = [] {
    const topology::plan plan = planned("three nodes", sections);
    simulation sim(plan, {.seed = 5, .faults = {.duplicate = 0.1, .corrupt = 0.01}});
    BOOST_REQUIRE(sim.submit(random_requests(5, 4)));
    std::size_t actions = 0;
    while (sim.act()) ++actions;
    return std::tuple(actions, sim.fault_counts().sent, sim.faults.size(), sim.rows.size(),
                      sim.faults.empty() ? std::string{} : sim.faults[0].what.message);
  };
  BOOST_TEST((run() == run()));
}

BOOST_AUTO_TEST_SUITE_END()
