// Goal: whatever the limits, the mixture of requests and the interleaving of steps and answers,
// every request gets exactly what it gets alone, nobody starves, KV stays within its budget, and
// every step keeps the rules of step_scheduler.hpp. Method: seeded random runs over a fake pipeline
// (fake_pipeline.hpp) against run_alone().
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <random>
#include <set>

#include "runtime/session/halo.hpp"
#include "tests/unit/runtime/session/fake_pipeline.hpp"

using namespace cedar;
using namespace cedar::session;
using test::expected_run;
using test::fake_pipeline;

namespace {

class random_run {
 public:
  std::uint32_t hits = 0;  ///< requests that began with a prefix

  explicit random_run(std::uint64_t seed) : random_(seed) {
    limits_.rows_per_step = number(1, 12);
    limits_.requests_max = number(1, 5);
    limits_.queue_max = 40;
    limits_.context_max = number(12, 30);
    limits_.steps_in_flight = number(1, 4);
    limits_.vocabulary = number(4, 20);
    limits_.lookback = number(0, 4);
    limits_.window = number(1, 12);
    if (number(0, 2) > 0) limits_.prefill_rows = number(1, 12);
    if (number(0, 1) > 0) limits_.draft_tokens_max = number(1, 6);
    if (number(0, 2) > 0) {
      // From as much as one request may need to as much as all do.
      limits_.kv_granule = number(1, 9);
      const std::uint32_t one = (limits_.context_max + limits_.kv_granule - 1) / limits_.kv_granule;
      limits_.kv_granules = number(one, one * limits_.requests_max);
      scarce_ = true;
    }
    if (number(0, 2) > 0) {
      limits_.prefix_granules = number(1, 120);
      limits_.prefix_step = number(1, 3);
      limits_.encoder_layers = number(0, 2);
      limits_.window = number(1, 4);  // shorter than most of what requests have in common
    }
    limits_.decoder_layers = number(1, 3);
    if (number(0, 1) > 0) policy_.emplace(limits_.draft_tokens_max, limits_.rows_per_step);
    core_.emplace(limits_, policy_ ? &*policy_ : nullptr);
    pipeline_.emplace(limits_);
  }

  void run() {
    std::size_t left = 30;
    for (std::size_t actions = 0; left > 0 || core_->requests() > 0; ++actions) {
      BOOST_REQUIRE_LT(actions, 100'000U);  // far more than any run takes
      const std::uint32_t choice = number(0, 9);
      if (choice == 0 && left > 0) {
        const std::size_t count = std::min<std::size_t>(left, number(1, 6));
        submit(count);
        left -= count;
      } else if (choice < 6) {
        start();
      } else if (choice == 6) {
        draft();
      } else if (pipeline_->steps() > 0) {
        answer();
      }
    }
    BOOST_REQUIRE(!core_->next_step());
    BOOST_REQUIRE_EQUAL(core_->steps_in_flight(), 0U);
    BOOST_REQUIRE_EQUAL(pipeline_->requests(), 0U);
    BOOST_REQUIRE(limits_.draft_tokens_max > 0 || orders_.empty());
    check_results();
  }

 private:
  struct tracked {
    generation_request ask;
    expected_run expected;
    std::vector<expected_run::event> events;
    usage used;
    bool finished = false;
    std::uint32_t prefill_end = 0;  ///< rows that were known when it began, or began again
    std::uint32_t scheduled = 0;
    std::uint32_t steps_in_flight = 0;  ///< that have rows of it
    std::uint32_t encoder_rows = 0;
    std::uint32_t decoder_rows = 0;
    std::uint32_t preemptions = 0;
    std::uint32_t skipped = 0;  ///< rows before the replay of a prefix
    std::optional<step_id> drafts_after{};  ///< whose verdict brought the order that is out
    std::vector<token_id> drafted{};  ///< that the next step may verify

    bool waits_for_rows() const {
      return scheduled < prefill_end || (steps_in_flight == 0 && !drafts_after);
    }
  };

  std::uint32_t number(std::uint32_t first, std::uint32_t last) {
    return first + static_cast<std::uint32_t>(random_() % (last - first + 1));
  }
  std::vector<token_id> tokens(std::uint32_t count) {
    std::vector<token_id> out(count);
    for (token_id& id : out) id = static_cast<token_id>(random_() % limits_.vocabulary);
    return out;
  }

  generation_request make_request() {
    generation_request out;
    out.prompt = tokens(number(1, limits_.context_max));
    if (!requests_.empty() && number(0, 3) > 0) begin_alike(out.prompt);
    const auto room = limits_.context_max - static_cast<std::uint32_t>(out.prompt.size());
    if (number(0, 3) == 0) out.forced = tokens(number(0, std::min(room, 5U)));
    out.mode = static_cast<prefill_mode>(number(0, 2));
    out.new_tokens_max = number(0, 12);
    out.ignore_eos = number(0, 3) == 0;
    out.prompt_logits = number(0, number(0, 1) == 0 ? 2 : limits_.context_max + 2);
    out.want_logits = number(0, 4) == 0;
    if (number(0, 4) == 0) out.taps = {"tap" + std::to_string(number(0, 2)), "tap"};
    return out;
  }

  /// As an earlier request did, or went on.
  void begin_alike(std::vector<token_id>& prompt) {
    const tracked& earlier =
        std::next(requests_.begin(), number(0, as_u32(requests_.size()) - 1))->second;
    std::vector<token_id> ids = earlier.ask.prompt;
    for (const expected_run::event& event : earlier.events)
      if (!event.in_prompt) ids.push_back(event.token);
    const std::uint32_t most = std::min(as_u32(ids.size()), limits_.context_max - 1);
    ids.resize(number(0, 1) == 0 ? most : number(0, most));
    prompt.resize(number(1, limits_.context_max - as_u32(ids.size())));
    prompt.insert(prompt.begin(), ids.begin(), ids.end());
  }
  static std::uint32_t as_u32(std::size_t value) { return static_cast<std::uint32_t>(value); }

  void submit(std::size_t count) {
    std::vector<generation_request> asks(count);
    for (generation_request& ask : asks) ask = make_request();
    const auto ids = core_->submit(asks);
    BOOST_REQUIRE(ids);
    BOOST_REQUIRE_EQUAL(ids->size(), count);
    for (std::size_t i = 0; i < count; ++i)
      requests_[(*ids)[i]] = {.ask = asks[i],
                              .expected = test::run_alone(asks[i], limits_),
                              .events = {},
                              .used = {},
                              .prefill_end = static_cast<std::uint32_t>(asks[i].prompt.size())};
  }

  /// With KV for all: the requests that the scheduler has in the pipeline, the first ones not
  /// finished.
  std::vector<request_id> admitted() const {
    std::vector<request_id> out;
    for (const auto& [id, one] : requests_)
      if (!one.finished && out.size() < std::min(limits_.requests_max, limits_.rows_per_step))
        out.push_back(id);
    return out;
  }

  /// Steps that have verdicts, and drafts that somebody waits for.
  std::size_t steps_drafting() const {
    std::set<step_id> out;
    for (const auto& [id, one] : requests_)
      if (one.drafts_after) out.insert(*one.drafts_after);
    return out.size();
  }

  void start() {
    const std::size_t in_flight = core_->steps_in_flight() + steps_drafting();
    const auto oldest = std::ranges::find_if(requests_, [](auto& r) { return !r.second.finished; });
    const bool answering = std::ranges::any_of(requests_, [](const auto& entry) {
      return !entry.second.finished && entry.second.scheduled >= entry.second.prefill_end;
    });
    const auto table = core_->next_step();
    if (in_flight == limits_.steps_in_flight) {
      BOOST_REQUIRE(!table);
      return;
    }
    std::uint32_t prompt_rows = 0;
    if (table) {
      BOOST_REQUIRE_EQUAL(table->step.value, ++steps_);
      prompt_rows = check_spans(*table);
      pipeline_->take(*table);
    }
    BOOST_REQUIRE_EQUAL(core_->steps_in_flight(), pipeline_->steps());
    // Whatever else waits for KV or for room: the oldest goes on.
    if (in_flight == 0 && oldest != requests_.end() && !oldest->second.drafts_after)
      BOOST_REQUIRE_GT(oldest->second.steps_in_flight, 0U);
    if (answering) BOOST_REQUIRE_LE(prompt_rows, limits_.prefill_rows);
    if (scarce_) return;
    const bool full = table && (table->rows_count() == limits_.rows_per_step ||
                                (answering && prompt_rows == limits_.prefill_rows));
    // Answers never wait for prompts, and prompts only for room.
    for (const request_id id : admitted()) {
      const tracked& one = requests_.at(id);
      if (one.scheduled >= one.prefill_end || !full) BOOST_REQUIRE(!one.waits_for_rows());
      if (one.scheduled < one.prefill_end) BOOST_REQUIRE_GT(prompt_rows, 0U);
    }
  }

  /// Returns the number of rows of prompts.
  std::uint32_t check_spans(const flow::step_table& table) {
    std::uint32_t prompt_rows = 0;
    bool prompt_cut = false;
    request_id last_prompt{0};
    std::set<request_id> seen;
    bool want_logits = false;
    std::set<std::string> taps;
    for (const flow::row_span& span : table.spans) {
      tracked& one = requests_.at(span.request);
      BOOST_REQUIRE(!one.finished);
      BOOST_REQUIRE(seen.insert(span.request).second);
      if (one.scheduled >= one.prefill_end) {
        BOOST_REQUIRE_EQUAL(prompt_rows, 0U);
        BOOST_REQUIRE(!one.drafts_after);
        BOOST_REQUIRE_LE(span.rows_count, 1 + one.drafted.size());
        one.drafted.clear();
        BOOST_REQUIRE_EQUAL(one.steps_in_flight, 0U);
      } else {
        BOOST_REQUIRE(last_prompt < span.request);
        BOOST_REQUIRE(!prompt_cut);  // by the end of the step, not for a younger one
        BOOST_REQUIRE_LE(span.first_position + span.rows_count, one.prefill_end);
        prompt_cut = span.first_position + span.rows_count < one.prefill_end;
        prompt_rows += span.rows_count;
        last_prompt = span.request;
      }
      check_span(span, one);
      want_logits = want_logits || one.ask.want_logits;
      taps.insert(one.ask.taps.begin(), one.ask.taps.end());
    }
    BOOST_REQUIRE_EQUAL(table.want_logits, want_logits);
    BOOST_REQUIRE_EQUAL(table.taps.size(), taps.size());
    BOOST_REQUIRE(std::set(table.taps.begin(), table.taps.end()) == taps);
    return prompt_rows;
  }

  /// Its boundary and its wanted rows: those that have had no event yet.
  void check_span(const flow::row_span& span, tracked& one) {
    if (one.scheduled == 0 && span.begin > 0) {
      BOOST_REQUIRE_LT(span.begin, span.stored);
      BOOST_REQUIRE_LT(span.stored, one.prefill_end);
      one.scheduled = one.skipped = span.begin;
      ++hits;
    }
    BOOST_REQUIRE_EQUAL(span.first_position, one.scheduled);
    const auto prompt = static_cast<std::uint32_t>(one.ask.prompt.size());
    const std::uint32_t begin = prompt - decoder_rows_of(one.ask);
    BOOST_REQUIRE_EQUAL(span.decoder_begin, std::max(begin, span.begin));
    const std::uint32_t wanted = prompt - std::clamp(one.ask.prompt_logits, 1U, prompt - begin) +
                                 static_cast<std::uint32_t>(one.events.size());
    for (std::uint32_t i = 0; i < span.rows_count; ++i)
      BOOST_REQUIRE_EQUAL(i >= span.logits_from, span.first_position + i >= wanted);
    BOOST_REQUIRE_LE(span.logits_from, span.rows_count);
    one.scheduled += span.rows_count;
    ++one.steps_in_flight;
    for (std::uint32_t i = 0; i < span.rows_count; ++i) {
      ++one.encoder_rows;
      if (span.first_position + i >= begin) ++one.decoder_rows;
    }
  }

  std::uint32_t decoder_rows_of(const generation_request& ask) const {
    const std::uint64_t prompt = ask.prompt.size();
    std::uint64_t rows = prompt;
    if (ask.mode == prefill_mode::bounded) rows = limits_.window;
    if (ask.mode == prefill_mode::halo)
      rows =
          halo_rows(limits_.window, limits_.decoder_layers) + std::max(ask.prompt_logits, 1U) - 1;
    return static_cast<std::uint32_t>(std::min(rows, prompt));
  }

  void answer() {
    const flow::step_table table = pipeline_->oldest();
    BOOST_REQUIRE((core_->oldest_step() == table.step));
    const flow::proposal proposal = pipeline_->answer();
    const auto outcome = core_->accept(proposal);
    BOOST_REQUIRE_MESSAGE(outcome, (outcome ? "" : outcome.error().message));
    if (policy_) policy_->step_took(number(1, 9));
    std::size_t row = 0;
    for (const row_event& event : outcome->events) {
      while (row < proposal.tokens.size() && proposal.tokens[row].request != event.request) ++row;
      BOOST_REQUIRE_LT(row, proposal.tokens.size());
      take_event(event, proposal, row++);
    }
    check_verdict(table, outcome->verdict);
    pipeline_->apply(outcome->verdict);
    check_orders(table.step, outcome->orders);
  }

  void take_event(const row_event& event, const flow::proposal& proposal, std::size_t row) {
    tracked& one = requests_.at(event.request);
    BOOST_REQUIRE(!one.finished);
    one.events.push_back({event.position, event.in_prompt, event.token, event.finish});
    BOOST_REQUIRE_EQUAL(event.log_probability, proposal.tokens[row].log_probability);
    BOOST_REQUIRE_EQUAL(event.logits.size(), one.ask.want_logits ? limits_.vocabulary : 0);
    if (one.ask.want_logits) {
      BOOST_REQUIRE_EQUAL(event.logits[0], static_cast<float>(event.request.value));
      BOOST_REQUIRE_EQUAL(event.logits[1], static_cast<float>(event.position));
    }
    if (event.finish == finish_reason::none) return;
    one.finished = true;
    BOOST_REQUIRE(core_->usage_of(event.request) != nullptr);
    one.used = *core_->usage_of(event.request);
  }

  void check_verdict(const flow::step_table& table, const flow::verdict& verdict) {
    BOOST_REQUIRE((verdict.step == table.step && verdict.epoch == table.epoch));
    BOOST_REQUIRE_GE(verdict.commitments.size(), table.spans.size());
    for (std::size_t i = 0; i < table.spans.size(); ++i) {
      const flow::row_span& span = table.spans[i];
      BOOST_REQUIRE((verdict.commitments[i].request == span.request));
      tracked& one = requests_.at(span.request);
      --one.steps_in_flight;
      // All rows but those behind the first token that was chosen otherwise, or ended the answer.
      const std::uint32_t end = span.first_position + span.rows_count;
      const std::uint32_t stands = verdict.commitments[i].committed;
      if (stands != end) {
        BOOST_REQUIRE_LT(stands, end);
        BOOST_REQUIRE_GT(stands, span.first_position);
        BOOST_REQUIRE_EQUAL(one.events.back().position + 1, stands);
        BOOST_REQUIRE(one.finished ||
                      one.events.back().token != pipeline_->ids(span.request).at(stands));
        one.scheduled = stands;
      }
    }
    std::set<request_id> seen;
    for (std::size_t i = 0; i < verdict.commitments.size(); ++i) {
      const flow::commitment& one = verdict.commitments[i];
      tracked& request = requests_.at(one.request);
      BOOST_REQUIRE(seen.insert(one.request).second);
      BOOST_REQUIRE(one.finished || (i < table.spans.size() && !request.finished));
      if (one.finished && !request.finished) preempted(request);
    }
  }

  /// Of requests that go on with a token that has no row yet, and could use more than one.
  void check_orders(step_id step, const std::vector<flow::draft_order>& orders) {
    for (const flow::draft_order& order : orders) {
      tracked& one = requests_.at(order.request);
      BOOST_REQUIRE(!one.finished && !one.drafts_after);
      BOOST_REQUIRE_EQUAL(one.steps_in_flight, 0U);
      BOOST_REQUIRE_EQUAL(order.position, one.scheduled);
      BOOST_REQUIRE_EQUAL(order.last, one.events.back().token);
      BOOST_REQUIRE(order.tokens_max > 0 && order.tokens_max <= limits_.draft_tokens_max);
      one.drafts_after = step;
      orders_.push_back(order);
    }
  }

  /// Answers the oldest order, in part with what the model will choose.
  void draft() {
    if (orders_.empty()) return;
    const flow::draft_order order = orders_.front();
    orders_.pop_front();
    tracked& one = requests_.at(order.request);
    if (policy_) policy_->drafts_took(1, number(0, 3));
    flow::draft made{order.request, order.position, {}, {}};
    // Its answer may come after the request was computed anew, and got another.
    const bool late = !one.drafts_after || order.position != one.scheduled;
    if (!late) {
      std::vector<token_id> ids = pipeline_->ids(order.request);
      ids.push_back(order.last);
      for (std::uint32_t i = number(0, order.tokens_max); i > 0; --i) {
        made.tokens.push_back(number(0, 3) == 0 ? tokens(1).front()
                                                : test::choice_after(ids, limits_.vocabulary));
        ids.push_back(made.tokens.back());
      }
      if (number(0, 1) > 0)
        for (std::size_t i = 0; i < made.tokens.size(); ++i)
          made.confidences.push_back(static_cast<float>(number(0, 10)) / 10);
    }
    BOOST_REQUIRE(core_->offer(made));
    if (late) return;
    one.drafts_after.reset();
    one.drafted = made.tokens;
  }

  void preempted(tracked& one) {
    BOOST_REQUIRE(scarce_);
    BOOST_REQUIRE_EQUAL(one.steps_in_flight, 0U);
    ++one.preemptions;
    one.scheduled = 0;
    one.drafts_after.reset();
    one.drafted.clear();
    const auto answers = std::ranges::count(one.events, false, &expected_run::event::in_prompt);
    one.prefill_end = static_cast<std::uint32_t>(one.ask.prompt.size() + answers);
  }

  void check_results() const {
    for (const auto& [id, one] : requests_) {
      BOOST_REQUIRE(one.finished);
      BOOST_REQUIRE((one.events == one.expected.events));
      BOOST_REQUIRE_EQUAL(one.used.prompt_tokens, one.expected.used.prompt_tokens);
      BOOST_REQUIRE_EQUAL(one.used.completion_tokens, one.expected.used.completion_tokens);
      BOOST_REQUIRE((one.used.mode == one.ask.mode));
      BOOST_REQUIRE_EQUAL(one.used.encoder_rows, one.encoder_rows);
      BOOST_REQUIRE_EQUAL(one.used.decoder_rows, one.decoder_rows);
      BOOST_REQUIRE_EQUAL(one.used.preemptions, one.preemptions);
      BOOST_REQUIRE_LE(one.used.accepted_tokens, one.used.drafted_tokens);
      if (one.preemptions > 0) continue;
      const std::uint32_t rejected = one.used.drafted_tokens - one.used.accepted_tokens;
      BOOST_REQUIRE_EQUAL(one.encoder_rows + one.skipped,
                          one.expected.used.encoder_rows + rejected);
      const bool exact = one.ask.mode == prefill_mode::exact;
      BOOST_REQUIRE_EQUAL(one.decoder_rows + (exact ? one.skipped : 0),
                          one.expected.used.decoder_rows + rejected);
    }
  }

  std::mt19937_64 random_;
  scheduler_limits limits_;
  bool scarce_ = false;  ///< KV may not be enough for all requests
  std::optional<draft_policy> policy_;
  std::optional<step_scheduler> core_;
  std::optional<fake_pipeline> pipeline_;
  std::map<request_id, tracked> requests_;
  std::deque<flow::draft_order> orders_;  ///< without an answer, the oldest first
  std::uint64_t steps_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(step_scheduler_property)

BOOST_DATA_TEST_CASE(requests_together_get_what_they_get_alone, boost::unit_test::data::xrange(200),
                     seed) {
  BOOST_TEST_CONTEXT("seed " << seed) {
    random_run run(static_cast<std::uint64_t>(seed));
    run.run();
  }
}

BOOST_AUTO_TEST_CASE(many_of_them_begin_with_prefixes) {
  std::uint32_t hits = 0;
  for (std::uint64_t seed = 1000; seed < 1040; ++seed) {
    random_run run(seed);
    run.run();
    hits += run.hits;
  }
  BOOST_TEST_MESSAGE(hits << " hits of " << 40 * 30 << " requests");
  BOOST_TEST(hits > 50U);
}

BOOST_AUTO_TEST_SUITE_END()
