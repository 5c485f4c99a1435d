// Goal: a step that fails leaves its stage as it was. Method: between two steps of a running
// request, steps that must fail, each by its named error; then the next true step must have the
// bits of a run without failures.
#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;
using flow::row_block;
using flow::step_table;

namespace {

constexpr request_id one{1}, two{2}, three{3};
constexpr std::uint32_t context_max = 40;

template <class T>
T value_of(result<T> made) {
  if (!made) BOOST_FAIL(made.error().message);
  return std::move(*made);
}

/// A stage of all layers that has run rows 0..19 of request 1 (20 rows wrap its window rings), and
/// what feeds it.
struct running_stage {
  running_stage()
      : embedding(value_of(tiny_model().make_embedding())),
        engram(value_of(tiny_model().make_engram())),
        layers(value_of(tiny_model().make_layers(cpu_backend(), {0, 11, 2, context_max}))) {
    ids = {{one, random_tokens(1, context_max + 5)},
           {two, random_tokens(2, context_max + 5)},
           {three, random_tokens(3, 10)}};
    value_of(run(table({{one, 0, 20}})));
    layers->apply({step_id{steps}, {}, {{one, 20, false}}});
    pages = layers->pages().pages_in_use();
  }

  step_table table(const std::vector<rows_of>& rows) { return step_of(++steps, ids, rows); }

  result<row_block> run(const step_table& step) {
    return layers->run(step, value_of(embedding.run(step)), value_of(engram.run(step)), {});
  }

  /// The next true step of request 1, after which nothing may be left of the failed one.
  void check_unharmed() {
    BOOST_TEST(layers->sequences() == 1U);
    BOOST_TEST(layers->pages().pages_in_use() == pages);
    const row_block after = value_of(run(table({{one, 20, 6}})));
    static const row_block undisturbed = [] {
      running_stage other;
      return value_of(other.run(other.table({{one, 20, 6}})));
    }();
    const auto made = flow::bytes_of(after.payload), expected = flow::bytes_of(undisturbed.payload);
    BOOST_TEST(std::equal(made.begin(), made.end(), expected.begin(), expected.end()));
  }

  void check_refused(const result<row_block>& ran, errc code, const std::string& text) {
    BOOST_REQUIRE(!ran);
    BOOST_TEST((ran.error().code == code));
    BOOST_TEST(ran.error().message.find(text) != std::string::npos, ran.error().message);
    check_unharmed();
  }

  stage::embedding_stage embedding;
  stage::engram_stage engram;
  std::unique_ptr<stage::layer_stage> layers;
  std::map<request_id, std::vector<token_id>> ids;
  std::uint64_t steps = 0;
  std::size_t pages = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(failed_step)

BOOST_AUTO_TEST_CASE(rows_that_do_not_continue_a_request_are_a_mismatch) {
  for (const std::uint32_t first : {0U, 1U, 19U, 21U}) {
    running_stage stage;
    stage.check_refused(stage.run(stage.table({{one, first, 3}})), errc::mismatch,
                        "request 1 has 20 rows, the step continues at " + std::to_string(first));
  }
  running_stage stage;
  stage.check_refused(stage.run(stage.table({{two, 4, 2}})), errc::mismatch,
                      "request 2 is unknown here");
}

BOOST_AUTO_TEST_CASE(a_good_span_does_not_run_beside_a_bad_one) {
  running_stage stage;
  stage.check_refused(stage.run(stage.table({{one, 20, 8}, {two, 0, 8}, {three, 5, 1}})),
                      errc::mismatch, "request 3 is unknown");
}

BOOST_AUTO_TEST_CASE(a_request_has_one_span_in_a_step) {
  running_stage stage;
  stage.check_refused(stage.run(stage.table({{one, 20, 2}, {one, 22, 2}})), errc::malformed,
                      "request 1 has two spans");
  running_stage other;
  other.check_refused(other.run(other.table({{one, 20, 2}, {one, 20, 2}})), errc::malformed,
                      "request 1 has two spans");
}

BOOST_AUTO_TEST_CASE(more_requests_than_the_stage_holds_are_beyond_its_capacity) {
  running_stage stage;
  stage.check_refused(stage.run(stage.table({{one, 20, 1}, {two, 0, 3}, {three, 0, 2}})),
                      errc::capacity, "limits.requests");
}

BOOST_AUTO_TEST_CASE(rows_beyond_the_context_are_beyond_its_capacity) {
  running_stage stage;
  stage.check_refused(stage.run(stage.table({{two, 0, 4}, {one, 20, context_max - 19}})),
                      errc::capacity, "reaches 41 positions, the context holds 40");
}

BOOST_AUTO_TEST_CASE(rows_of_another_step_or_kind_or_size_are_malformed) {
  const auto damaged = [](auto damage) {
    running_stage stage;
    const step_table step = stage.table({{one, 20, 6}});
    row_block input = value_of(stage.embedding.run(step));
    damage(input);
    stage.check_refused(stage.layers->run(step, input, value_of(stage.engram.run(step)), {}),
                        errc::malformed, "step 2");
  };
  damaged([](row_block& block) { block.step = step_id{1}; });
  damaged([](row_block& block) { block.kind = flow::row_kind::activation; });
  damaged([](row_block& block) { block.spans[0].first_position = 21; });
  damaged([](row_block& block) { block.rows_count = 5; });
  damaged([](row_block& block) { ++block.row_bytes; });
  damaged([](row_block& block) { block.payload = nullptr; });
  damaged([](row_block& block) {
    block.payload = flow::freeze(kernels::buffer(std::size_t{6} * block.row_bytes - 1));
  });
}

BOOST_AUTO_TEST_CASE(missing_or_wrong_engram_rows_are_malformed_and_name_the_layer) {
  const auto damaged = [](auto damage, const std::string& text) {
    running_stage stage;
    const step_table step = stage.table({{one, 20, 6}});
    std::vector<row_block> engram = value_of(stage.engram.run(step));
    damage(engram);
    stage.check_refused(stage.layers->run(step, value_of(stage.embedding.run(step)), engram, {}),
                        errc::malformed, text);
  };
  using blocks = std::vector<row_block>;
  damaged([](blocks& all) { all.clear(); }, "layer 1");
  damaged([](blocks& all) { all.pop_back(); }, "layer 4");
  damaged([](blocks& all) { all[1].layer = 1; }, "layer 4");
  damaged([](blocks& all) { all[1].step = step_id{1}; }, "layer 4");
  damaged([](blocks& all) { all[1].kind = flow::row_kind::embedded; }, "layer 4");
  damaged([](blocks& all) { --all[1].row_bytes; }, "layer 4");
  damaged([](blocks& all) { all[0].payload = nullptr; }, "layer 1");
}

BOOST_AUTO_TEST_CASE(a_verdict_after_a_failed_step_still_settles_the_step_before) {
  running_stage stage;
  value_of(stage.run(stage.table({{one, 20, 4}})));
  const std::uint64_t ran = stage.steps;
  BOOST_REQUIRE(!stage.run(stage.table({{one, 9, 1}})));
  stage.layers->apply({step_id{ran}, {}, {{one, 20, false}}});  // takes the four rows back
  stage.check_unharmed();
}

BOOST_AUTO_TEST_CASE(verdicts_on_unknown_requests_are_ignored) {
  running_stage stage;
  stage.layers->apply({step_id{1}, {}, {{two, 5, false}, {three, 0, true}}});
  stage.check_unharmed();
}

BOOST_AUTO_TEST_CASE(tokens_outside_the_vocabulary_are_refused_before_any_table_is_read) {
  running_stage stage;
  for (const token_id bad : {-1, 512}) {
    step_table step = stage.table({{one, 20, 3}});
    step.tokens[1] = bad;
    const auto embedded = stage.embedding.run(step);
    BOOST_REQUIRE(!embedded);
    BOOST_TEST((embedded.error().code == errc::invalid_argument));
    BOOST_TEST((stage.engram.run(step).error().code == errc::invalid_argument));
    step = stage.table({{one, 20, 3}});
    step.lookback[0] = bad;
    BOOST_TEST((stage.engram.run(step).error().code == errc::invalid_argument));
  }
  step_table step = stage.table({{one, 20, 3}});
  step.lookback.pop_back();
  BOOST_TEST((stage.engram.run(step).error().code == errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(the_head_takes_only_its_steps_rows) {
  running_stage stage;
  const auto head = value_of(tiny_model().make_head(cpu_backend()));
  const step_table step = stage.table({{one, 20, 2}});
  const row_block good = value_of(stage.run(step));
  const auto refused = [&](auto damage) {
    row_block bad = good;
    damage(bad);
    const auto ran = head->run(step, bad, {});
    return !ran && ran.error().code == errc::malformed;
  };
  BOOST_TEST(refused([](row_block& block) { block.kind = flow::row_kind::embedded; }));
  BOOST_TEST(refused([](row_block& block) { block.step = step_id{1}; }));
  BOOST_TEST(refused([](row_block& block) { block.rows_count = 1; }));
  BOOST_TEST(refused([](row_block& block) { block.row_bytes = 2; }));
  BOOST_TEST(refused([](row_block& block) { block.payload = nullptr; }));
  BOOST_TEST(refused([](row_block& block) { block.spans[0].logits_from = 1; }));
  BOOST_TEST(head->run(step, good, {}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
