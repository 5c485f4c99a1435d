// Goal: units connected by messages compute what the local engine does, and refuse what is not
// theirs. Method: a whole pipeline of units in one thread, its messages delivered in seeded random
// order (in order on each edge), against local_engine.
#include "runtime/stage/unit.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <deque>
#include <random>

#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

constexpr request_id one{1}, two{2};

template <class T>
T value_of(result<T> made) {
  if (!made) BOOST_FAIL(made.error().message);
  return std::move(*made);
}

std::unique_ptr<stage::unit> layer_unit(std::uint32_t first, std::uint32_t last,
                                        std::size_t steps_max = 4) {
  return stage::make_layer_unit(
      value_of(tiny_model().make_layers(cpu_backend(), {first, last, 4, 64})), steps_max);
}

/// embedding, engram, layers 0-5, layers 6-11, head; an edge is a queue.
class unit_pipeline {
 public:
  explicit unit_pipeline(std::uint64_t seed) : random_(seed) {
    units_.push_back(stage::make_embedding_unit(value_of(tiny_model().make_embedding())));
    units_.push_back(stage::make_engram_unit(value_of(tiny_model().make_engram())));
    units_.push_back(layer_unit(0, 5));
    units_.push_back(layer_unit(6, 11));
    units_.push_back(stage::make_head_unit(value_of(tiny_model().make_head(cpu_backend())), 4));
  }

  void send(const flow::step_table& table) {
    for (std::size_t to = 0; to < units_.size(); ++to) edges_[{scheduler, to}].push_back(table);
  }
  void send(const flow::verdict& verdict) {
    for (const std::size_t to : {front, back, head}) edges_[{scheduler, to}].push_back(verdict);
  }

  /// Delivers one message of a random edge; false: there is none.
  bool deliver() {
    std::vector<std::pair<std::size_t, std::size_t>> ready;
    for (const auto& [edge, queue] : edges_)
      if (!queue.empty()) ready.push_back(edge);
    if (ready.empty()) return false;
    const auto edge = ready[random_() % ready.size()];
    flow::message next = std::move(edges_.at(edge).front());
    edges_.at(edge).pop_front();
    const std::size_t from = edge.second;
    stage::unit_output out = value_of(units_[from]->take(std::move(next)));
    for (const stage::unit_work& work : out.work) {
      BOOST_TEST((work.first_arrival <= work.begin && work.begin <= work.end));
      worked_[from].push_back(work.step);
      engram_counts_[from] += work.engram;
    }
    for (flow::message& message : out.messages) route(from, std::move(message));
    return true;
  }

  std::vector<flow::proposal> proposals;
  std::vector<flow::tap> taps;
  const std::vector<step_id>& worked(std::size_t unit) { return worked_[unit]; }
  const engram_counts& engram_counts_of(std::size_t unit) { return engram_counts_[unit]; }

  static constexpr std::size_t embedding = 0, engram = 1, front = 2, back = 3, head = 4;

 private:
  static constexpr std::size_t scheduler = 99;

  void route(std::size_t from, flow::message message) {
    if (auto* proposal = std::get_if<flow::proposal>(&message)) {
      proposals.push_back(std::move(*proposal));
    } else if (auto* tap = std::get_if<flow::tap>(&message)) {
      taps.push_back(std::move(*tap));
    } else {
      const std::size_t to = from == engram || from == embedding ? front : from + 1;
      edges_[{from, to}].push_back(std::move(message));
    }
  }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<stage::unit>> units_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<flow::message>> edges_;
  std::map<std::size_t, std::vector<step_id>> worked_;
  std::map<std::size_t, engram_counts> engram_counts_;
};

bool same_bytes(const flow::payload_ref& a, const flow::payload_ref& b) {
  const auto left = flow::bytes_of(a), right = flow::bytes_of(b);
  return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

errc refusal(stage::unit& unit, flow::message message) {
  const auto taken = unit.take(std::move(message));
  BOOST_REQUIRE(!taken);
  return taken.error().code;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(units)

BOOST_DATA_TEST_CASE(units_compute_what_the_local_engine_does_in_any_order_of_delivery,
                     boost::unit_test::data::xrange(1, 6), seed) {
  BOOST_TEST_MESSAGE("seed " << seed);
  const std::map<request_id, std::vector<token_id>> ids{{one, random_tokens(1, 30)},
                                                        {two, random_tokens(2, 30)}};
  const std::vector<std::vector<rows_of>> steps{
      {{one, 0, 9}}, {{one, 9, 4}, {two, 0, 7}}, {{two, 7, 1}, {one, 13, 1}}, {{one, 14, 2}}};
  tiny_run oracle;
  unit_pipeline pipeline(static_cast<std::uint64_t>(seed));
  std::vector<flow::proposal> expected;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const flow::step_table table = step_of(i + 1, ids, steps[i]);
    pipeline.send(table);
    expected.push_back(value_of(oracle.engine->run(table, {})));
  }
  while (pipeline.deliver()) continue;
  BOOST_REQUIRE_EQUAL(pipeline.proposals.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    BOOST_TEST((pipeline.proposals[i].step == expected[i].step));
    BOOST_TEST((pipeline.proposals[i].tokens == expected[i].tokens));
    BOOST_TEST(same_bytes(pipeline.proposals[i].logits, expected[i].logits));
  }
  for (std::size_t unit = 0; unit <= unit_pipeline::head; ++unit)
    BOOST_TEST(
        (pipeline.worked(unit) == std::vector{step_id{1}, step_id{2}, step_id{3}, step_id{4}}));
  // 24 rows with a table row in each of six columns of two tables, which the first stage needs.
  BOOST_TEST((pipeline.engram_counts_of(unit_pipeline::engram) == engram_counts{288, 0, 0, 0}));
  BOOST_TEST(pipeline.engram_counts_of(unit_pipeline::front).steps == 4U);
  BOOST_TEST(pipeline.engram_counts_of(unit_pipeline::front).late <= 4U);
  BOOST_TEST((pipeline.engram_counts_of(unit_pipeline::back) == engram_counts{}));
}

BOOST_AUTO_TEST_CASE(taps_leave_before_the_rows_that_they_belong_to_and_change_no_bit) {
  const std::map<request_id, std::vector<token_id>> ids{{one, random_tokens(3, 12)}};
  flow::step_table table = step_of(1, ids, {{one, 0, 12}});
  unit_pipeline plain(1), probed(1);
  plain.send(table);
  table.taps = {"L3.attn.out", "L*.ffn.out", "final.normed"};
  probed.send(table);
  while (plain.deliver()) continue;
  while (probed.deliver()) continue;
  BOOST_REQUIRE_EQUAL(probed.proposals.size(), 1U);
  BOOST_TEST(same_bytes(plain.proposals[0].logits, probed.proposals[0].logits));
  BOOST_TEST(plain.taps.empty());
  std::vector<std::string> names;
  std::size_t ends = 0;
  for (const flow::tap& tap : probed.taps) {
    BOOST_TEST((tap.step == step_id{1}));
    if (tap.last) {
      ++ends;
      continue;
    }
    names.push_back(tap.name);
    BOOST_TEST(tap.shape.front() == 12U);
  }
  BOOST_TEST(ends == 3U);  // of two stages and the head
  BOOST_TEST(probed.taps.back().last);
  BOOST_TEST(std::ranges::count(names, "L3.attn.out") == 1);
  BOOST_TEST(std::ranges::count(names, "L11.ffn.out") == 1);
  BOOST_TEST(names.size() == 1U + 12 + 1);
  BOOST_TEST(names.back() == "final.normed");
}

BOOST_AUTO_TEST_CASE(messages_that_a_unit_does_not_take_are_malformed) {
  const auto embedding = stage::make_embedding_unit(value_of(tiny_model().make_embedding()));
  const auto engram = stage::make_engram_unit(value_of(tiny_model().make_engram()));
  const auto layers = layer_unit(0, 5);
  const auto head = stage::make_head_unit(value_of(tiny_model().make_head(cpu_backend())), 4);
  BOOST_TEST((refusal(*embedding, flow::verdict{}) == errc::malformed));
  BOOST_TEST((refusal(*engram, flow::row_block{}) == errc::malformed));
  BOOST_TEST((refusal(*layers, flow::proposal{}) == errc::malformed));
  BOOST_TEST((refusal(*layers, flow::tap{}) == errc::malformed));
  BOOST_TEST((refusal(*head, flow::proposal{}) == errc::malformed));
  BOOST_TEST((refusal(*head, flow::row_block{}) == errc::malformed));  // an activation
  flow::row_block answer;
  answer.kind = flow::row_kind::expert_outputs;
  BOOST_TEST((refusal(*layers, answer) == errc::malformed));  // to nothing that was asked
  BOOST_CHECK_THROW(layers->go_on(), defect);
  const auto experts =
      stage::make_expert_unit(value_of(tiny_model().make_experts(cpu_backend(), {0, 0, 5, {1}})));
  BOOST_TEST((refusal(*experts, flow::step_table{}) == errc::malformed));
  BOOST_TEST((refusal(*experts, answer) == errc::malformed));
  BOOST_CHECK_THROW(experts->go_on(), defect);
}

BOOST_AUTO_TEST_CASE(a_unit_stays_usable_after_a_failed_step) {
  const std::map<request_id, std::vector<token_id>> ids{{one, random_tokens(4, 12)}};
  const auto embedding = stage::make_embedding_unit(value_of(tiny_model().make_embedding()));
  flow::step_table table = step_of(1, ids, {{one, 0, 12}});
  table.tokens[3] = -1;
  BOOST_TEST((refusal(*embedding, table) == errc::invalid_argument));
  BOOST_TEST(embedding->take(step_of(2, ids, {{one, 0, 12}})).has_value());
}

BOOST_AUTO_TEST_CASE(a_new_epoch_forgets_requests_and_half_joined_steps) {
  const std::map<request_id, std::vector<token_id>> ids{{one, random_tokens(5, 12)}};
  const flow::step_table first = step_of(1, ids, {{one, 0, 8}});
  const auto embedding = value_of(tiny_model().make_embedding());
  const auto engram = value_of(tiny_model().make_engram());
  const auto layers = layer_unit(0, 5, 1);
  const auto run = [&](const flow::step_table& table) {
    BOOST_REQUIRE(layers->take(table));
    for (flow::row_block& block : value_of(engram.run(table))) BOOST_REQUIRE(layers->take(block));
    return layers->take(value_of(embedding.run(table)));
  };
  const auto before = value_of(run(first));
  BOOST_REQUIRE(layers->take(step_of(2, ids, {{one, 8, 4}})));  // its rows never come
  layers->begin_epoch();
  flow::step_table again = first;  // the same request begins anew, and there is room for a step
  again.step = step_id{3};
  const auto after = value_of(run(again));
  BOOST_REQUIRE((before.messages.size() == 1 && after.messages.size() == 1));
  BOOST_TEST(same_bytes(std::get<flow::row_block>(before.messages[0]).payload,
                        std::get<flow::row_block>(after.messages[0]).payload));
}

BOOST_AUTO_TEST_SUITE_END()
