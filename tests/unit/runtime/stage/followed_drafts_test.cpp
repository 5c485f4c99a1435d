// Goal: a drafter that hears of a request only while drafts are wanted proposes what one proposes
// that has had every row from the first on, and forgets all that is over. Method: whole generations
// of tiny-12, scheduled by a policy that made-up times turn on and off; its steps go through two
// pipelines, one as they are, one with every span's rows tapped, and both get the same orders.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "runtime/session/step_scheduler.hpp"
#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

constexpr std::uint32_t requests_max = 4;
constexpr std::uint32_t context = 256;
constexpr std::uint32_t rows_per_step = 40;

/// KV in granules of 128 positions.
struct kv_room {
  std::uint64_t all = 8;
  std::uint64_t prefixes = 0;
};

template <class T>
T value_of(result<T> made) {
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
  return std::move(*made);
}

void require(const result<void>& done) {
  BOOST_REQUIRE_MESSAGE(done, (done ? "" : done.error().message));
}

/// Layers, head and drafter.
class pipeline {
 public:
  explicit pipeline(const kv_room& room) {
    stage::layer_stage_options placed{0, tiny_model().config().layers - 1, requests_max, context};
    placed.kv_granules = room.all;
    placed.prefix_granules = room.prefixes;
    placed.tapped_layers = tiny_model().config().dspark.target_layers;
    layers_ = value_of(tiny_model().make_layers(cpu_backend(), placed));
    head_ = value_of(tiny_model().make_head(cpu_backend()));
    auto drafter = value_of(tiny_model().make_drafter(cpu_backend(), requests_max));
    drafter_ = drafter.get();
    drafting_ = std::make_unique<stage::drafting>(std::move(drafter), tiny_model().config());
  }

  /// `drafter_hears`: else it gets neither the step nor its verdict.
  flow::proposal run(const flow::step_table& table, bool drafter_hears) {
    const auto embedded = value_of(embedding_.run(table));
    const auto engram = value_of(engram_.run(table));
    const auto blocks = value_of(layers_->begin({table, embedded, engram, {}, {}}, {}));
    hears_ = drafter_hears;
    for (std::size_t i = 0; i + 1 < blocks.size(); ++i) tapped_rows += blocks[i].rows_count;
    if (hears_) require(drafting_->extend(table, blocks));
    return value_of(head_->run(table, blocks.back(), {}));
  }

  void apply(const flow::verdict& verdict) {
    require(layers_->apply(verdict));
    head_->apply(verdict);
    if (hears_) require(drafting_->apply(verdict));
  }

  std::vector<flow::draft> drafts(const std::vector<flow::draft_order>& orders) {
    return value_of(drafting_->run(orders));
  }

  std::size_t sequences() const { return drafter_->sequences(); }

  std::uint64_t tapped_rows = 0;  ///< over all target layers

 private:
  stage::embedding_stage embedding_ = value_of(tiny_model().make_embedding());
  stage::engram_stage engram_ = value_of(tiny_model().make_engram());
  std::unique_ptr<stage::layer_stage> layers_;
  std::unique_ptr<stage::head_stage> head_;
  std::unique_ptr<stage::drafting> drafting_;
  stage::drafter_stage* drafter_ = nullptr;
  bool hears_ = false;
};

/// As every row's taps would go to a drafter from the first on.
flow::step_table all_tapped(flow::step_table table) {
  for (flow::row_span& span : table.spans) span.taps = flow::tap_use::rows;
  std::erase_if(table.sampling, [&](const flow::request_sampling& entry) {
    return !std::ranges::find(table.spans, entry.request, &flow::row_span::request)->begins();
  });
  return table;
}

/// Greedy, sampled, penalised, bounded; short and longer than a window, and than a step.
session::generation_request asked(std::uint64_t number) {
  session::generation_request out;
  out.prompt = random_tokens(number % 5, 6 + number * 13 % 70);
  out.new_tokens_max = 20 + static_cast<std::uint32_t>(number * 31 % 60);
  out.ignore_eos = true;
  if (number % 4 == 1) out.sampling.temperature = 0.8F;
  if (number % 4 == 2) out.sampling.repetition_penalty = 1.3F;
  if (number % 4 == 3) out.mode = session::prefill_mode::bounded;
  return out;
}

session::scheduler_limits limits_with(const kv_room& room) {
  const model::model_config& config = tiny_model().config();
  session::scheduler_limits out{.rows_per_step = rows_per_step,
                                .requests_max = requests_max,
                                .queue_max = 100,
                                .context_max = context,
                                .vocabulary = config.vocabulary,
                                .lookback = config.engram_lookback(),
                                .window = config.window,
                                .encoder_layers = tiny_model().schedule().decoder_begin(),
                                .decoder_layers = tiny_model().schedule().decoder_layers()};
  out.kv_granule = 128;
  out.kv_granules = room.all;
  out.prefix_granules = room.prefixes;
  out.prefix_step = 2;
  out.draft_tokens_max = config.dspark.block_size;
  return out;
}

struct counts {
  std::uint32_t drafts = 0;
  std::uint32_t windows = 0;  ///< spans that a drafter begins with, mid-answer too
  std::uint32_t unheard = 0;  ///< steps that the drafter did not hear of
  std::uint32_t preemptions = 0;
  std::uint64_t prefix_hits = 0;
};

/// Runs steps through both pipelines.
counts compare(const kv_room& room, std::uint32_t steps) {
  session::draft_policy policy(tiny_model().config().dspark.block_size, rows_per_step);
  session::step_scheduler scheduler(limits_with(room), &policy);
  pipeline late(room), eager(room);
  counts seen;
  std::uint64_t asked_for = 0;
  for (std::uint32_t step = 0; step < steps; ++step) {
    while (scheduler.requests() < requests_max) {
      auto submitted = scheduler.submit({asked(asked_for++)});
      BOOST_REQUIRE(submitted);
    }
    const auto table = scheduler.next_step();
    BOOST_REQUIRE(table);
    for (const flow::row_span& span : table->spans)
      if (span.taps == flow::tap_use::window) ++seen.windows;
    if (!scheduler.drafter_hears()) ++seen.unheard;
    const flow::proposal proposal = late.run(*table, scheduler.drafter_hears());
    eager.run(all_tapped(*table), true);
    const auto outcome = value_of(scheduler.accept(proposal));
    late.apply(outcome.verdict);
    eager.apply(outcome.verdict);
    for (const session::row_event& event : outcome.events)
      if (event.finish != session::finish_reason::none)
        seen.preemptions += scheduler.usage_of(event.request)->preemptions;
    // Drafts pay and do not, by turns.
    const bool rows_cost_nothing = step / 150 % 2 == 0;
    policy.step_took(rows_cost_nothing ? 1 : table->rows_count());
    if (outcome.orders.empty()) continue;
    const auto drafts = late.drafts(outcome.orders);
    BOOST_REQUIRE((drafts == eager.drafts(outcome.orders)));
    policy.drafts_took(static_cast<std::uint32_t>(drafts.size()), 0.1);
    for (const flow::draft& draft : drafts) require(scheduler.offer(draft));
    seen.drafts += static_cast<std::uint32_t>(drafts.size());
  }
  seen.prefix_hits = scheduler.load().prefix_hits;
  BOOST_TEST_MESSAGE(seen.drafts << " drafts, " << seen.windows << " windows, " << seen.unheard
                                 << " steps unheard, " << seen.preemptions << " preemptions, "
                                 << seen.prefix_hits << " prefix hits; " << late.tapped_rows
                                 << " tapped rows of " << eager.tapped_rows);
  BOOST_TEST(late.sequences() <= requests_max);
  BOOST_TEST(seen.drafts > 200U);
  BOOST_TEST(seen.windows > asked_for / 4);
  BOOST_TEST(seen.unheard > 50U);
  return seen;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(followed_drafts)

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_AUTO_TEST_CASE(are_those_of_a_drafter_that_had_every_row) {
  BOOST_TEST(compare({4, 0}, 1200).preemptions > 0U);
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_AUTO_TEST_CASE(are_so_after_prefixes) {
  BOOST_TEST(compare({16, 8}, 1200).prefix_hits > 0U);
}

BOOST_AUTO_TEST_CASE(cost_no_tap_and_no_message_while_nobody_wants_them) {
  session::draft_policy policy(tiny_model().config().dspark.block_size, rows_per_step);
  session::step_scheduler scheduler(limits_with({}), &policy);
  pipeline only({});
  auto request = asked(0);
  request.prompt = random_tokens(1, 100);
  request.new_tokens_max = 40;
  BOOST_REQUIRE(scheduler.submit({request}));
  std::uint32_t steps = 0;
  while (const auto table = scheduler.next_step()) {
    BOOST_TEST(!scheduler.drafter_hears());
    const auto outcome = value_of(scheduler.accept(only.run(*table, scheduler.drafter_hears())));
    only.apply(outcome.verdict);
    BOOST_TEST(outcome.orders.empty());
    ++steps;  // no times: the policy has nothing to go by
  }
  BOOST_TEST(steps > 40U);
  BOOST_TEST(only.tapped_rows == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
