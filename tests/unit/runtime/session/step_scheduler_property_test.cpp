// Goal: whatever the limits, the mixture of requests and the interleaving of steps and answers,
// every request gets exactly what it gets alone, and every step keeps the rules of
// step_scheduler.hpp. Method: seeded random runs over a fake pipeline (fake_pipeline.hpp) against
// run_alone().
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <random>
#include <set>

#include "tests/unit/runtime/session/fake_pipeline.hpp"

using namespace cedar;
using namespace cedar::session;
using test::expected_run;
using test::fake_pipeline;

namespace {

class random_run {
 public:
  explicit random_run(std::uint64_t seed) : random_(seed) {
    limits_.rows_per_step = number(1, 12);
    limits_.requests_max = number(1, 5);
    limits_.queue_max = 40;
    limits_.context_max = number(12, 30);
    limits_.steps_in_flight = number(1, 4);
    limits_.vocabulary = number(4, 20);
    limits_.lookback = number(0, 4);
    limits_.window = number(1, 12);
    core_.emplace(limits_);
    pipeline_.emplace(limits_);
  }

  void run() {
    std::size_t left = 30;
    while (left > 0 || core_->requests() > 0) {
      const std::uint32_t choice = number(0, 9);
      if (choice == 0 && left > 0) {
        const std::size_t count = std::min<std::size_t>(left, number(1, 6));
        submit(count);
        left -= count;
      } else if (choice < 6) {
        start();
      } else if (pipeline_->steps() > 0) {
        answer();
      }
    }
    BOOST_REQUIRE(!core_->next_step());
    BOOST_REQUIRE_EQUAL(core_->steps_in_flight(), 0U);
    check_results();
  }

 private:
  struct tracked {
    generation_request ask;
    expected_run expected;
    std::vector<expected_run::event> events;
    usage used;
    bool finished = false;
    std::uint32_t scheduled = 0;
    std::uint32_t decode_rows_in_flight = 0;
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
    const auto room = limits_.context_max - static_cast<std::uint32_t>(out.prompt.size());
    if (number(0, 3) == 0) out.forced = tokens(number(0, std::min(room, 5U)));
    out.mode = number(0, 1) == 0 ? prefill_mode::exact : prefill_mode::bounded;
    out.new_tokens_max = number(0, 12);
    out.ignore_eos = number(0, 3) == 0;
    out.prompt_logits = number(0, limits_.context_max + 2);
    out.want_logits = number(0, 4) == 0;
    if (number(0, 4) == 0) out.taps = {"tap" + std::to_string(number(0, 2)), "tap"};
    return out;
  }

  void submit(std::size_t count) {
    std::vector<generation_request> asks(count);
    for (generation_request& ask : asks) ask = make_request();
    const auto ids = core_->submit(asks);
    BOOST_REQUIRE(ids);
    BOOST_REQUIRE_EQUAL(ids->size(), count);
    for (std::size_t i = 0; i < count; ++i)
      requests_[(*ids)[i]] = {asks[i], test::run_alone(asks[i], limits_), {}, {}, false, 0, 0};
  }

  /// Requests that the scheduler may have in the pipeline now: the first ones not finished.
  std::vector<request_id> admitted() const {
    std::vector<request_id> out;
    for (const auto& [id, one] : requests_)
      if (!one.finished && out.size() < limits_.requests_max) out.push_back(id);
    return out;
  }

  void start() {
    const bool full = core_->steps_in_flight() == limits_.steps_in_flight;
    const auto table = core_->next_step();
    BOOST_REQUIRE(!(full && table));
    if (full) return;
    const std::uint32_t rows = table ? table->rows_count() : 0;
    if (table) {
      BOOST_REQUIRE_EQUAL(table->step.value, ++steps_);
      check_spans(*table);
      pipeline_->take(*table);
    }
    BOOST_REQUIRE_EQUAL(core_->steps_in_flight(), pipeline_->steps());
    if (rows == limits_.rows_per_step) return;
    // With room left, nobody admitted is without a row on its way.
    for (const request_id id : admitted()) {
      const tracked& one = requests_.at(id);
      BOOST_REQUIRE_GE(one.scheduled, one.ask.prompt.size());
      BOOST_REQUIRE(one.decode_rows_in_flight == 1 || last_prompt_row_in_flight(id));
    }
  }

  bool last_prompt_row_in_flight(request_id id) const {
    const tracked& one = requests_.at(id);
    return one.scheduled == one.ask.prompt.size() && one.events.size() < one.expected.events.size();
  }

  void check_spans(const flow::step_table& table) {
    const std::vector<request_id> allowed = admitted();
    bool prompts_began = false;
    request_id last_prompt{0};
    std::set<request_id> seen;
    bool want_logits = false;
    std::set<std::string> taps;
    for (const flow::row_span& span : table.spans) {
      tracked& one = requests_.at(span.request);
      BOOST_REQUIRE(std::ranges::count(allowed, span.request) == 1);
      BOOST_REQUIRE(seen.insert(span.request).second);
      const auto prompt = static_cast<std::uint32_t>(one.ask.prompt.size());
      if (span.first_position >= prompt) {
        BOOST_REQUIRE(!prompts_began);
        BOOST_REQUIRE_EQUAL(span.rows_count, 1U);
        BOOST_REQUIRE_EQUAL(++one.decode_rows_in_flight, 1U);
      } else {
        BOOST_REQUIRE(!prompts_began || last_prompt < span.request);
        BOOST_REQUIRE_LE(span.first_position + span.rows_count, prompt);
        prompts_began = true;
        last_prompt = span.request;
      }
      const bool bounded = one.ask.mode == prefill_mode::bounded;
      const std::uint32_t begin = bounded && prompt > limits_.window ? prompt - limits_.window : 0;
      BOOST_REQUIRE_EQUAL(span.decoder_begin, begin);
      const std::uint32_t wanted = prompt - std::clamp(one.ask.prompt_logits, 1U, prompt - begin);
      for (std::uint32_t i = 0; i < span.rows_count; ++i)
        BOOST_REQUIRE_EQUAL(i >= span.logits_from, span.first_position + i >= wanted);
      BOOST_REQUIRE_LE(span.logits_from, span.rows_count);
      one.scheduled += span.rows_count;
      want_logits = want_logits || one.ask.want_logits;
      taps.insert(one.ask.taps.begin(), one.ask.taps.end());
    }
    BOOST_REQUIRE_EQUAL(table.want_logits, want_logits);
    BOOST_REQUIRE_EQUAL(table.taps.size(), taps.size());
    BOOST_REQUIRE(std::set(table.taps.begin(), table.taps.end()) == taps);
  }

  void answer() {
    const flow::step_table table = pipeline_->oldest();
    BOOST_REQUIRE((core_->oldest_step() == table.step));
    const flow::proposal proposal = pipeline_->answer();
    const auto outcome = core_->accept(proposal);
    BOOST_REQUIRE_MESSAGE(outcome, (outcome ? "" : outcome.error().message));
    BOOST_REQUIRE_EQUAL(outcome->events.size(), proposal.tokens.size());
    for (std::size_t row = 0; row < outcome->events.size(); ++row)
      take_event(outcome->events[row], proposal, row);
    check_verdict(table, outcome->verdict);
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
    BOOST_REQUIRE_EQUAL(verdict.commitments.size(), table.spans.size());
    for (std::size_t i = 0; i < table.spans.size(); ++i) {
      const flow::row_span& span = table.spans[i];
      tracked& one = requests_.at(span.request);
      const flow::commitment expected{span.request, span.first_position + span.rows_count,
                                      one.finished};
      BOOST_REQUIRE((verdict.commitments[i] == expected));
      if (span.first_position >= one.ask.prompt.size()) --one.decode_rows_in_flight;
    }
  }

  void check_results() const {
    for (const auto& [id, one] : requests_) {
      BOOST_REQUIRE(one.finished);
      BOOST_REQUIRE((one.events == one.expected.events));
      BOOST_REQUIRE_EQUAL(one.used.prompt_tokens, one.expected.used.prompt_tokens);
      BOOST_REQUIRE_EQUAL(one.used.completion_tokens, one.expected.used.completion_tokens);
      BOOST_REQUIRE((one.used.mode == one.ask.mode));
      BOOST_REQUIRE_EQUAL(one.used.encoder_rows, one.expected.used.encoder_rows);
      BOOST_REQUIRE_EQUAL(one.used.decoder_rows, one.expected.used.decoder_rows);
    }
  }

  std::mt19937_64 random_;
  scheduler_limits limits_;
  std::optional<step_scheduler> core_;
  std::optional<fake_pipeline> pipeline_;
  std::map<request_id, tracked> requests_;
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

BOOST_AUTO_TEST_SUITE_END()
