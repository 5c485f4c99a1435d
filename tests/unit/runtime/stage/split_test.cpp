// Goal: wherever the model is cut, however its groups are split, in both modes: the bits of one
// stage. Method: tiny-12 in stages by hand against the local engine, over all cuts and random
// placements; chunks of several requests share steps.
#include <boost/test/unit_test.hpp>
#include <random>

#include "runtime/stage/row_layout.hpp"
#include "runtime/stage/shared_blocks.hpp"
#include "tests/support/effort.hpp"
#include "tests/unit/runtime/stage/split_pipeline.hpp"

using namespace cedar;
using namespace cedar::test;
using flow::row_kind;

namespace {

constexpr std::uint32_t layers = 12;

/// Steps over two requests, one of them long enough for the window, with chunks that cut groups of
/// every ratio; then decoding.
std::vector<flow::step_table> steps_of(bool bounded) {
  const std::map<request_id, std::vector<token_id>> ids{{request_id{1}, random_tokens(1, 75)},
                                                        {request_id{2}, random_tokens(2, 40)}};
  const std::uint32_t window = tiny_model().config().window;
  const std::uint32_t prompt = 70;
  BOOST_REQUIRE(window < prompt);
  std::vector<flow::step_table> steps;
  const auto add = [&](const std::vector<rows_of>& rows) {
    steps.push_back(step_of(steps.size() + 1, ids, rows));
    for (flow::row_span& span : steps.back().spans) {
      if (bounded && span.request == request_id{1}) span.decoder_begin = prompt - window;
      span.logits_from = span.decoder_from();
    }
  };
  const request_id one{1}, two{2};
  add({{one, 0, 31}});
  add({{one, 31, 20}, {two, 0, 9}});
  add({{two, 9, 26}, {one, 51, 19}});
  for (std::uint32_t i = 0; i < 5; ++i) add({{one, 70 + i, 1}, {two, 35 + i, 1}});
  return steps;
}

const std::vector<std::vector<float>>& expected(bool bounded) {
  static std::map<bool, std::vector<std::vector<float>>> known;
  auto& logits = known[bounded];
  if (logits.empty()) {
    split_pipeline whole({{0, layers - 1}}, {});
    for (const auto& table : steps_of(bounded))
      std::ranges::move(whole.run(table), std::back_inserter(logits));
  }
  return logits;
}

void check_placement(const placement& stages, const std::set<std::uint32_t>& gather_owners,
                     bool bounded) {
  split_pipeline pipeline(stages, gather_owners);
  std::vector<std::vector<float>> logits;
  for (const auto& table : steps_of(bounded))
    std::ranges::move(pipeline.run(table), std::back_inserter(logits));
  BOOST_REQUIRE_EQUAL(logits.size(), expected(bounded).size());
  for (std::size_t row = 0; row < logits.size(); ++row)
    BOOST_REQUIRE_MESSAGE(same(logits[row], expected(bounded)[row]), "wanted row " << row);
}

const std::set<std::uint32_t> all_owners{2, 4, 6};

}  // namespace

BOOST_AUTO_TEST_SUITE(splits)

BOOST_AUTO_TEST_CASE(exact_rows_are_those_of_the_local_engine) {
  tiny_run run({64, 4, 256});
  run.ids = {{request_id{1}, random_tokens(1, 75)}};
  run.step({{request_id{1}, 0, 31}});
  for (std::uint32_t row = 0; row < 31; ++row)
    BOOST_TEST(same(run.logits.at({request_id{1}, row}), expected(false)[row]));
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_AUTO_TEST_CASE(every_cut_in_both_split_modes_and_both_prefill_modes) {
  for (std::uint32_t cut = 0; cut + 1 < layers; ++cut)
    for (const bool gather : {false, true})
      for (const bool bounded : {false, true})
        BOOST_TEST_CONTEXT("cut after " << cut << (gather ? ", gather" : ", mirror")
                                        << (bounded ? ", bounded" : ", exact"))
  check_placement({{0, cut}, {cut + 1, layers - 1}},
                  gather ? all_owners : std::set<std::uint32_t>{}, bounded);
}

BOOST_AUTO_TEST_CASE(random_placements_of_many_stages) {
  std::mt19937 random(20261129);
  for (int round = 0; round < seeds_count(24); ++round) {
    std::set<std::uint32_t> cuts;
    const std::size_t count = 2 + random() % 10;
    while (cuts.size() < count) cuts.insert(static_cast<std::uint32_t>(random() % (layers - 1)));
    placement stages;
    std::uint32_t first = 0;
    for (const std::uint32_t cut : cuts) {
      stages.emplace_back(first, cut);
      first = cut + 1;
    }
    stages.emplace_back(first, layers - 1);
    std::set<std::uint32_t> gather;
    for (const std::uint32_t owner : all_owners)
      if (random() % 2 == 0) gather.insert(owner);
    BOOST_TEST_CONTEXT("round " << round) check_placement(stages, gather, random() % 2 == 0);
  }
}

BOOST_AUTO_TEST_CASE(bounded_differs_from_exact_only_after_the_window) {
  const auto exact = steps_of(false);
  std::vector<std::vector<float>> wanted;  // of exact, the rows that bounded has
  std::size_t row = 0;
  for (const auto& table : exact)
    for (const flow::row_span& span : table.spans)
      for (std::uint32_t i = 0; i < span.rows_count; ++i, ++row)
        if (span.request == request_id{2} ||
            span.first_position + i >= 70 - tiny_model().config().window)
          wanted.push_back(expected(false)[row]);
  BOOST_REQUIRE_EQUAL(wanted.size(), expected(true).size());
  std::size_t differing = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) differing += !same(wanted[i], expected(true)[i]);
  BOOST_TEST(differing > 0U);  // the truncated window of request 1 shows
  // Request 2 is exact in both; its rows come last in each decoding step.
  BOOST_TEST(same(wanted.back(), expected(true).back()));
}

BOOST_AUTO_TEST_CASE(taken_back_rows_leave_replicas_as_they_were) {
  const auto steps = steps_of(false);
  split_pipeline pipeline({{0, 4}, {5, 7}, {8, 11}}, {4});
  std::vector<std::vector<float>> logits;
  for (const auto& table : steps) {
    if (table.step == step_id{5}) {  // run it twice, the first time in vain
      pipeline.run(table);
      flow::verdict none{table.step, {}, {}};
      for (const flow::row_span& span : table.spans)
        none.commitments.push_back({span.request, span.first_position, false});
      pipeline.apply(none);
    }
    std::ranges::move(pipeline.run(table), std::back_inserter(logits));
  }
  for (std::size_t row = 0; row < logits.size(); ++row)
    BOOST_REQUIRE(same(logits[row], expected(false)[row]));
}

BOOST_AUTO_TEST_CASE(pages_of_replicas_return_with_the_request) {
  split_pipeline pipeline({{0, 4}, {5, 11}}, {2});
  pipeline.run(steps_of(false).front());
  for (const auto& stage : pipeline.stages) BOOST_TEST(stage->pages().pages_in_use() > 0U);
  pipeline.apply({step_id{1}, {}, {{request_id{1}, 31, true}}});
  for (const auto& stage : pipeline.stages) BOOST_TEST(stage->pages().pages_in_use() == 0U);
}

BOOST_AUTO_TEST_CASE(what_crosses_has_the_bytes_of_the_table) {
  const auto& config = tiny_model().config();
  const auto tables = steps_of(false);
  std::uint64_t rows = 0, entries = 0, chosen = 0;
  for (const auto& table : tables)
    for (const flow::row_span& span : table.spans) {
      rows += span.rows_count;
      entries += span.entries_count(2);
      for (std::uint32_t i = 0; i < span.rows_count; ++i)
        chosen +=
            model::selected_count(config, tiny_model().schedule()[4], span.first_position + i);
    }
  const auto bytes = [&](row_kind kind) { return std::uint64_t{stage::row_bytes(kind, config)}; };
  split_pipeline mirror({{0, 4}, {5, 11}}, {});
  split_pipeline gather({{0, 4}, {5, 11}}, {4});
  for (const auto& table : tables) {
    mirror.run(table);
    gather.run(table);
  }
  BOOST_TEST(mirror.traffic[row_kind::shared_kv].second == entries * bytes(row_kind::shared_kv));
  BOOST_TEST(mirror.traffic[row_kind::selection].second == rows * bytes(row_kind::selection));
  BOOST_TEST(mirror.traffic.count(row_kind::index_keys) == 0U);
  BOOST_TEST(gather.traffic.count(row_kind::shared_kv) == 0U);
  BOOST_TEST(gather.traffic[row_kind::gather_request].first == tables.size());
  BOOST_TEST(gather.traffic[row_kind::gathered].second == chosen * bytes(row_kind::gathered));
}

BOOST_AUTO_TEST_SUITE_END()
