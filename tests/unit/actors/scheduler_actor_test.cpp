// Goal: the scheduler's actor orders verdicts before tables, gives everything up once and by name,
// and takes nothing afterwards. Method: the actor under CAF's test scheduler and clock, its
// pipeline played by hand. Whole pipelines are tests/sim/actors.
#include "actors/scheduler_actor.hpp"

#include <boost/test/unit_test.hpp>
#include <map>

#include "tests/unit/actors/test_system.hpp"

using namespace cedar;
using namespace cedar::actors;
using namespace cedar::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t tables = 1, verdicts = 2, proposals = 3, orders = 4, answers = 5,
                        images = 6;
constexpr token_id image_token = 50;

struct bound_scheduler {
  explicit bound_scheduler(std::uint32_t draft_tokens = 0, bool draft_policy = false) {
    scheduler = actors.keep(spawn_scheduler(
        actors.system(),
        {{.rows_per_step = 8,
          .requests_max = 2,
          .queue_max = 8,
          .context_max = 32,
          .steps_in_flight = 2,
          .vocabulary = 100,
          .image_token = image_token,
          .kv_granule = 32,
          .draft_tokens_max = draft_tokens,
          .images = image::image_rules{.patch = 2, .downsample = 2, .tokens_max = 20}},
         700ms,
         {[this](const flow::proposal&, const std::vector<session::row_event>& made) {
            for (const session::row_event& event : made) events.push_back(event);
            if (throw_on_rows) throw std::runtime_error("a listener that throws");
          },
          [this](request_id request, const session::usage&) { finished.push_back(request); },
          [](flow::tap) {},
          {},
          [this](const std::vector<request_id>& requests, const fault& why) {
            given_up.insert(given_up.end(), requests.begin(), requests.end());
            reasons.push_back(why);
          },
          [this](const session::measured_costs& costs) { measured.push_back(costs); }},
         &trace,
         nullptr,
         draft_policy}));
    bind(0);
  }

  void bind(std::uint32_t epoch) {
    const packet_sink stage = actors.packet_recorder(sent);
    BOOST_REQUIRE(actors.ask<bound_atom>(
        scheduler, bind_atom::value,
        edge_ends_ref(std::make_shared<const std::vector<edge_end>>(
            std::vector{edge_end_of(tables, true, "step_table", stage, 2),
                        edge_end_of(verdicts, true, "verdict", stage, 2),
                        edge_end_of(proposals, false, "proposal", stage, 2),
                        edge_end_of(orders, true, "draft_orders", stage, 1),
                        edge_end_of(answers, false, "draft_answers", stage, 2),
                        edge_end_of(images, true, "image", stage, 1)})),
        epoch));
    proposed = answered = 0;
  }
  void resume() {
    caf::anon_send(scheduler, resume_atom::value);
    actors.run();
  }

  result<request_ids_ref> submit(std::size_t prompt, std::uint32_t new_tokens) {
    session::generation_request ask;
    ask.prompt.assign(prompt, 7);
    ask.new_tokens_max = new_tokens;
    return submit(ask);
  }
  result<request_ids_ref> submit(const session::generation_request& ask) {
    return actors.ask<request_ids_ref>(
        scheduler, submit_atom::value,
        requests_ref(
            std::make_shared<const std::vector<session::generation_request>>(std::vector{ask})));
  }

  /// Answers the table that was sent as the `index`-th packet, every wanted row with token 9.
  void propose(std::size_t index) {
    const auto& table = std::get<flow::step_table>(sent.at(index).body);
    flow::proposal out{table.step, table.epoch, {}, {}};
    for (const flow::row_span& span : table.spans)
      for (std::uint32_t i = span.logits_from; i < span.rows_count; ++i)
        out.tokens.push_back({span.request, span.first_position + i, 9, 0});
    send(packet_of(proposals, proposed++, std::move(out)));
  }
  /// Answers the orders that were sent as the `index`-th packet, each with `tokens`.
  void draft(std::size_t index, const std::vector<token_id>& tokens) {
    const auto& ordered = std::get<flow::draft_orders>(sent.at(index).body);
    flow::draft_answers out{ordered.step, ordered.epoch, {}};
    for (const flow::draft_order& order : ordered.orders)
      out.drafts.push_back({order.request, order.position, tokens, {}});
    send(packet_of(answers, answered++, std::move(out)));
  }
  void send(const packet_ref& packet) {
    caf::anon_send(scheduler, packet);
    actors.run();
  }
  void measure() {
    caf::anon_send(scheduler, measure_atom::value);
    actors.run();
  }
  /// Gives all credit back for the packet that was sent as the `index`-th.
  void use_up(std::size_t index) {
    const flow::stamped_message& packet = sent.at(index);
    send(packet_of(packet.head.edge.value, credited[packet.head.edge]++,
                   flow::credit{{}, 1, flow::credit_bytes(packet.body)}));
  }
  void give_up(const std::string& where) {
    caf::anon_send(
        scheduler, fail_atom::value,
        fault_ref(std::make_shared<const fault>(fault{where, {errc::peer_lost, "gone"}})));
    actors.run();
  }

  /// Kinds of what was sent except credit, in order.
  std::vector<std::string> kinds() const {
    std::vector<std::string> out;
    for (const flow::stamped_message& packet : sent)
      if (flow::kind_of(packet.body) != "credit") out.emplace_back(flow::kind_of(packet.body));
    return out;
  }

  trace_recorder trace{0};
  std::vector<flow::stamped_message> sent;
  std::vector<session::row_event> events;
  std::vector<request_id> finished, given_up;
  std::vector<session::measured_costs> measured;
  std::vector<fault> reasons;
  bool throw_on_rows = false;
  std::uint64_t proposed = 0;
  std::uint64_t answered = 0;
  std::map<edge_id, std::uint64_t> credited;
  test_system actors;
  scheduler_actor scheduler;
};

using texts = std::vector<std::string>;
const auto by_element = boost::test_tools::per_element();

}  // namespace

BOOST_AUTO_TEST_SUITE(scheduler_actors)

BOOST_AUTO_TEST_CASE(a_verdict_leaves_before_the_table_that_follows_from_it) {
  bound_scheduler one;
  BOOST_REQUIRE(one.submit(3, 2));
  BOOST_TEST(one.kinds() == texts{"step_table"}, by_element);
  one.propose(0);
  BOOST_TEST(one.kinds() == (texts{"step_table", "verdict", "step_table"}), by_element);
  BOOST_TEST(one.events.size() == 1U);
  BOOST_TEST(one.finished.empty());
}

BOOST_AUTO_TEST_CASE(no_table_leaves_while_a_verdict_waits_for_credit) {
  bound_scheduler one;
  BOOST_REQUIRE(one.submit(3, 9));
  const std::uint64_t table_bytes = flow::credit_bytes(one.sent[0].body);
  std::size_t last_table = 0;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    one.send(packet_of(
        tables, step - 1,
        flow::credit{
            {}, 1, step == 1 ? table_bytes : flow::credit_bytes(one.sent[last_table].body)}));
    one.propose(last_table);
    for (std::size_t i = 0; i < one.sent.size(); ++i)
      if (std::holds_alternative<flow::step_table>(one.sent[i].body)) last_table = i;
  }
  // The window of two verdicts is used up: the third waits, and with it the fourth table.
  BOOST_TEST(std::ranges::count(one.kinds(), "verdict") == 2);
  BOOST_TEST(std::ranges::count(one.kinds(), "step_table") == 3);
  const std::uint64_t verdict_bytes = flow::credit_bytes(flow::verdict{{}, {}, {{{}, 0, false}}});
  one.send(packet_of(verdicts, 0, flow::credit{{}, 2, 2 * verdict_bytes}));
  const texts kinds = one.kinds();
  BOOST_REQUIRE_EQUAL(kinds.size(), 7U);
  BOOST_TEST(kinds[5] == "verdict");
  BOOST_TEST(kinds[6] == "step_table");
}

/// Pictures of 2 x 2 patches, four positions each, at these positions of eight: a whole step.
session::generation_request with_images(const std::vector<std::uint32_t>& positions) {
  session::generation_request ask;
  ask.prompt.assign(8, 7);
  for (const std::uint32_t position : positions) {
    std::fill_n(ask.prompt.begin() + position, 4, image_token);
    ask.images.push_back({position, 4, 2, 2, flow::freeze(kernels::buffer(48)), {}});
  }
  ask.new_tokens_max = 1;
  return ask;
}

BOOST_AUTO_TEST_CASE(an_image_leaves_before_its_table_and_makes_only_images_wait) {
  bound_scheduler one;
  BOOST_REQUIRE(one.submit(with_images({0, 4})));
  // Both begin in the first step; the window holds one.
  BOOST_TEST(one.kinds() == (texts{"image", "step_table"}), by_element);
  BOOST_REQUIRE(one.submit(with_images({2})));
  BOOST_TEST(one.kinds() == (texts{"image", "step_table", "step_table"}), by_element);
  const auto table = std::get<flow::step_table>(one.sent.back().body);
  BOOST_REQUIRE_EQUAL(table.spans.size(), 1U);
  BOOST_TEST(table.spans[0].rows_count == 2U);  // up to its image
  one.send(packet_of(images, 0, flow::credit{{}, 1, 48}));
  BOOST_TEST(one.kinds().back() == "image");
  const auto second = std::get<flow::step_image>(one.sent.back().body);
  BOOST_TEST((second.step == step_id{1}));
  BOOST_TEST(second.image.image.position == 4U);
  one.send(packet_of(tables, 0, flow::credit{{}, 1, flow::credit_bytes(one.sent[1].body)}));
  one.propose(1);
  BOOST_TEST(
      one.kinds() == (texts{"image", "step_table", "step_table", "image", "verdict", "step_table"}),
      by_element);
  one.send(packet_of(images, 1, flow::credit{{}, 1, 48}));
  BOOST_TEST((std::get<flow::step_image>(one.sent.back().body).step == step_id{3}));
  BOOST_TEST(one.reasons.empty());
}

BOOST_AUTO_TEST_CASE(a_failure_is_told_once_and_everything_after_it_is_refused_by_its_name) {
  bound_scheduler one;
  const auto ids = one.submit(3, 5);
  BOOST_REQUIRE(ids);
  one.give_up("node 'back'");
  one.give_up("node 'front'");
  BOOST_REQUIRE_EQUAL(one.reasons.size(), 1U);
  BOOST_TEST(one.reasons[0].where == "node 'back'");
  BOOST_TEST((one.given_up == **ids));
  one.propose(0);  // too late
  BOOST_TEST(one.events.empty());
  const auto refused = one.submit(3, 5);
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::peer_lost));
  BOOST_TEST(refused.error().message == "node 'back': gone");
  one.actors.advance(10s);
  BOOST_TEST(one.reasons.size() == 1U);
}

BOOST_AUTO_TEST_CASE(after_a_failure_it_goes_on_with_those_that_had_waited) {
  bound_scheduler one;
  std::vector<request_id> ids;
  for (int i = 0; i < 3; ++i) {
    const auto taken = one.submit(3, 1);  // two run at a time
    BOOST_REQUIRE(taken);
    ids.push_back((*taken)->front());
  }
  one.give_up("node 'back'");
  BOOST_TEST((one.given_up == std::vector{ids[0], ids[1]}));
  const std::size_t before = one.sent.size();
  one.bind(5);
  BOOST_TEST(!one.submit(3, 1));  // not before all units are bound
  BOOST_TEST(one.sent.size() == before);
  one.resume();
  BOOST_TEST_REQUIRE(one.sent.size() == before + 1);
  BOOST_TEST((flow::epoch_of(one.sent.back().body) == epoch_id{5}));
  one.propose(before);
  BOOST_TEST((one.finished == std::vector{ids[2]}));
  // Time that passed before counts for nothing, and the next failure is told again.
  BOOST_REQUIRE(one.submit(3, 5));
  one.actors.advance(699ms);
  BOOST_TEST(one.reasons.size() == 1U);
  one.actors.advance(1ms);
  BOOST_TEST_REQUIRE(one.reasons.size() == 2U);
  BOOST_TEST(one.reasons[1].where == "step 4");
}

BOOST_AUTO_TEST_CASE(what_comes_late_is_of_no_account_in_the_next_epoch) {
  bound_scheduler one;
  BOOST_REQUIRE(one.submit(3, 5));
  one.give_up("node 'back'");
  one.bind(1);
  one.resume();
  one.propose(0);
  BOOST_TEST(one.events.empty());
  BOOST_TEST(one.reasons.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_proposal_that_does_not_answer_the_step_is_a_failure_by_name) {
  bound_scheduler one;
  BOOST_REQUIRE(one.submit(3, 5));
  one.send(packet_of(proposals, 0, flow::proposal{step_id{2}, {}, {}, {}}));
  BOOST_REQUIRE_EQUAL(one.reasons.size(), 1U);
  BOOST_TEST(one.reasons[0].where == "scheduler");
  BOOST_TEST((one.reasons[0].what.code == errc::mismatch));
}

BOOST_AUTO_TEST_CASE(the_deadline_is_that_of_the_oldest_step) {
  bound_scheduler one;
  BOOST_REQUIRE(one.submit(12, 5));  // two chunks: two steps on their way
  one.actors.advance(500ms);
  one.propose(0);
  one.actors.advance(199ms);  // the second step is as old as the first was
  BOOST_TEST(one.reasons.empty());
  one.actors.advance(1ms);
  BOOST_REQUIRE_EQUAL(one.reasons.size(), 1U);
  BOOST_TEST(one.reasons[0].where == "step 2");
}

BOOST_AUTO_TEST_CASE(a_step_has_its_whole_time_however_late_the_one_before_was) {
  bound_scheduler one;
  BOOST_REQUIRE(one.submit(3, 5));
  one.actors.advance(600ms);
  one.propose(0);
  one.actors.advance(100ms);  // when the first step would have been late
  BOOST_TEST(one.reasons.empty());
  one.actors.advance(599ms);
  BOOST_TEST(one.reasons.empty());
  one.actors.advance(1ms);
  BOOST_REQUIRE_EQUAL(one.reasons.size(), 1U);
  BOOST_TEST(one.reasons[0].where == "step 2");
}

BOOST_AUTO_TEST_CASE(nothing_is_late_when_nothing_is_awaited) {
  bound_scheduler one;
  BOOST_REQUIRE(one.submit(3, 1));
  one.actors.advance(600ms);
  one.propose(0);
  BOOST_TEST(one.finished.size() == 1U);
  one.actors.advance(10s);
  BOOST_TEST(one.reasons.empty());
  BOOST_REQUIRE(one.submit(3, 1));  // a step's time begins with its table
  one.actors.advance(699ms);
  BOOST_TEST(one.reasons.empty());
  one.actors.advance(1ms);
  BOOST_TEST(one.reasons.size() == 1U);
}

BOOST_AUTO_TEST_CASE(what_escapes_from_a_listener_is_a_defect_that_gives_everything_up) {
  bound_scheduler one;
  const auto ids = one.submit(3, 5);
  BOOST_REQUIRE(ids);
  one.throw_on_rows = true;
  one.propose(0);
  BOOST_REQUIRE_EQUAL(one.reasons.size(), 1U);
  BOOST_TEST(one.reasons[0].where == "scheduler");
  BOOST_TEST((one.reasons[0].what.code == errc::defect));
  BOOST_TEST(one.reasons[0].what.message == "a listener that throws");
  BOOST_TEST((one.given_up == **ids));
}

BOOST_AUTO_TEST_CASE(
    a_draft_is_ordered_after_the_verdict_and_its_tokens_are_rows_of_the_next_step) {
  bound_scheduler one(5);
  BOOST_REQUIRE(one.submit(3, 9));
  one.propose(0);
  BOOST_TEST(one.kinds() == (texts{"step_table", "verdict", "draft_orders"}), by_element);
  one.draft(2, {9, 9, 8});
  BOOST_TEST_REQUIRE(one.kinds().size() == 4U);
  const auto& table = std::get<flow::step_table>(one.sent.back().body);
  BOOST_TEST(table.tokens == (std::vector<token_id>{9, 9, 9, 8}), by_element);
  one.propose(one.sent.size() - 1);
  BOOST_TEST(one.events.size() == 1U + 3);  // one token of the step itself, two of the draft
}

BOOST_AUTO_TEST_CASE(a_draft_that_does_not_come_is_late_by_name_though_no_step_is_under_way) {
  bound_scheduler one(5);
  BOOST_REQUIRE(one.submit(3, 9));
  one.actors.advance(600ms);
  one.propose(0);
  one.actors.advance(699ms);
  BOOST_TEST(one.reasons.empty());
  one.actors.advance(1ms);
  BOOST_REQUIRE_EQUAL(one.reasons.size(), 1U);
  BOOST_TEST(one.reasons[0].where == "drafter");
  BOOST_TEST(one.reasons[0].what.message == "no draft within 700 ms (deadlines_ms.step)");
  // The next epoch knows nothing of it.
  one.bind(1);
  one.resume();
  one.actors.advance(10s);
  BOOST_TEST(one.reasons.size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_answer_to_other_orders_is_a_failure_by_name) {
  const auto check = [](const std::function<void(flow::draft_answers&)>& spoil) {
    bound_scheduler one(5);
    BOOST_REQUIRE(one.submit(3, 9));
    one.propose(0);
    const auto& ordered = std::get<flow::draft_orders>(one.sent.at(2).body);
    const flow::draft_order& order = ordered.orders.at(0);
    flow::draft_answers out{
        ordered.step, ordered.epoch, {{order.request, order.position, {7}, {}}}};
    spoil(out);
    one.send(packet_of(answers, 0, std::move(out)));
    BOOST_REQUIRE_EQUAL(one.reasons.size(), 1U);
    BOOST_TEST(one.reasons[0].where == "scheduler");
    BOOST_TEST((one.reasons[0].what.code == errc::mismatch));
  };
  check([](flow::draft_answers& made) { made.step = step_id{7}; });
  check([](flow::draft_answers& made) { made.drafts.clear(); });
  check([](flow::draft_answers& made) { made.drafts[0].request = request_id{9}; });
  check([](flow::draft_answers& made) { ++made.drafts[0].position; });
  check([](flow::draft_answers& made) { made.drafts[0].tokens.assign(6, 7); });
  check([](flow::draft_answers& made) { made.drafts[0].tokens = {100}; });  // no such token
}

BOOST_AUTO_TEST_CASE(no_table_leaves_while_an_order_waits_for_credit) {
  bound_scheduler one(5);
  BOOST_REQUIRE(one.submit(3, 9));
  BOOST_REQUIRE(one.submit(3, 9));
  const std::uint64_t table_bytes = flow::credit_bytes(one.sent[0].body);
  one.send(packet_of(tables, 0, flow::credit{{}, 2, 2 * table_bytes}));
  one.propose(0);  // its order takes the window
  one.propose(1);
  const auto first = std::ranges::find_if(one.sent, [](const flow::stamped_message& packet) {
    return std::holds_alternative<flow::draft_orders>(packet.body);
  });
  BOOST_REQUIRE((first != one.sent.end()));
  const std::uint64_t order_bytes = flow::credit_bytes(first->body);
  one.draft(static_cast<std::size_t>(first - one.sent.begin()), {});
  // The first request could go on, but the second one's order waits.
  BOOST_TEST(std::ranges::count(one.kinds(), "draft_orders") == 1);
  BOOST_TEST(std::ranges::count(one.kinds(), "step_table") == 2);
  one.send(packet_of(orders, 0, flow::credit{{}, 1, order_bytes}));
  BOOST_TEST(std::ranges::count(one.kinds(), "draft_orders") == 2);
  BOOST_TEST(std::ranges::count(one.kinds(), "step_table") == 3);
}

BOOST_AUTO_TEST_CASE(costs_are_measured_before_requests_and_leave_nothing_in_the_next_epoch) {
  bound_scheduler one(3, true);
  one.measure();
  std::size_t handled = 0;
  std::size_t steps = 0;
  while (one.measured.empty()) {
    BOOST_TEST_REQUIRE(handled < one.sent.size());
    const flow::message& next = one.sent[handled].body;
    if (std::holds_alternative<flow::step_table>(next)) {
      ++steps;
      one.propose(handled);
    } else if (std::holds_alternative<flow::draft_orders>(next)) {
      one.draft(handled, {});
    }
    if (!std::holds_alternative<flow::credit>(next)) one.use_up(handled);
    ++handled;
  }
  BOOST_TEST(one.measured.size() == 1U);
  BOOST_TEST(one.measured[0].steps == steps);
  BOOST_TEST(one.measured[0].drafts > 0U);
  BOOST_TEST(one.events.empty());
  BOOST_TEST(one.finished.empty());

  one.sent.clear();
  BOOST_REQUIRE(one.submit(3, 2));
  BOOST_TEST(one.kinds().empty());
  one.bind(1);
  one.resume();
  const auto table = std::get<flow::step_table>(one.sent.at(0).body);
  BOOST_TEST((table.step == step_id{1}));
  BOOST_TEST((table.spans.at(0).request == request_id{1}));
  BOOST_TEST((table.epoch == epoch_id{1}));
}

BOOST_AUTO_TEST_CASE(a_measurement_that_takes_too_long_ends_with_its_epoch) {
  bound_scheduler one(3, true);
  one.measure();
  BOOST_TEST(one.kinds() == texts{"step_table"}, by_element);
  one.bind(1);
  one.actors.advance(10s);
  BOOST_TEST(one.reasons.empty());
  BOOST_TEST(one.measured.empty());
  one.sent.clear();
  BOOST_REQUIRE(one.submit(3, 2));
  BOOST_TEST(one.kinds() == texts{"step_table"}, by_element);
  one.propose(0);
  BOOST_TEST(one.events.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_measured_step_without_a_proposal_is_late_by_name) {
  bound_scheduler one(3, true);
  one.measure();
  one.actors.advance(701ms);
  BOOST_REQUIRE(one.reasons.size() == 1U);
  BOOST_TEST(one.reasons[0].where == "step 1");
  one.bind(1);
  one.resume();
  BOOST_TEST(one.submit(3, 2).has_value());
}

BOOST_AUTO_TEST_CASE(nothing_is_measured_where_nobody_would_use_it) {
  bound_scheduler one(3);
  one.measure();
  BOOST_REQUIRE(one.measured.size() == 1U);
  BOOST_TEST(one.measured[0].steps == 0U);
  BOOST_TEST(one.kinds().empty());
}

BOOST_AUTO_TEST_SUITE_END()
