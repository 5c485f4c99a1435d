// Goal: what each end of an edge accepts, refuses, and grants. Method: one message at a time.
#include "runtime/flow/edge.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

#include "kernels/base/check.hpp"

using namespace cedar;
using namespace cedar::flow;
using namespace std::chrono_literals;

namespace {

const edge_time start{};

edge_contract contract_of(std::uint32_t messages, std::uint64_t bytes) {
  return {edge_id{3}, "a -> b", 42, messages, bytes};
}

/// A message of exactly `bytes` credit bytes.
message message_of(std::size_t bytes, std::uint32_t epoch = 0) {
  row_block block;
  block.epoch = epoch_id{epoch};
  block.payload = freeze(kernels::buffer(bytes));
  return block;
}

envelope head_of(std::uint64_t sequence) {
  return {edge_id{3}, sequence, 42};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(outbound)

BOOST_AUTO_TEST_CASE(numbers_messages_from_zero) {
  outbound_edge edge(contract_of(4, 100), 4);
  edge.push(message_of(10), start);
  edge.push(message_of(10), start);
  const auto first = edge.pop(start);
  const auto second = edge.pop(start);
  BOOST_REQUIRE((first && second));
  BOOST_TEST(first->head.sequence == 0U);
  BOOST_TEST(second->head.sequence == 1U);
  BOOST_TEST((second->head.edge == edge_id{3}));
  BOOST_TEST(second->head.fingerprint == 42U);
  BOOST_TEST(!edge.pop(start));
}

BOOST_AUTO_TEST_CASE(waits_for_messages_and_for_bytes) {
  outbound_edge edge(contract_of(2, 100), 4);
  for (int i = 0; i < 3; ++i) edge.push(message_of(60), start);
  BOOST_TEST(edge.pop(start).has_value());
  BOOST_TEST(!edge.pop(start));  // 40 bytes left
  BOOST_REQUIRE(edge.grant(head_of(0), {epoch_id{0}, 0, 60}).has_value());
  BOOST_TEST(edge.pop(start + 5ms).has_value());
  BOOST_REQUIRE(edge.grant(head_of(1), {epoch_id{0}, 0, 60}).has_value());
  BOOST_TEST(!edge.pop(start));  // bytes are there, no message
  BOOST_REQUIRE(edge.grant(head_of(2), {epoch_id{0}, 1, 0}).has_value());
  BOOST_TEST(edge.pop(start + 7ms).has_value());
  BOOST_TEST(edge.statistics().waits == 2U);
  BOOST_TEST((edge.statistics().waited == 12ms));
  BOOST_TEST(edge.statistics().messages == 3U);
  BOOST_TEST(edge.statistics().bytes == 180U);
  BOOST_TEST(edge.statistics().queued_max == 3U);
}

BOOST_AUTO_TEST_CASE(a_large_message_is_not_overtaken_by_a_small_one) {
  outbound_edge edge(contract_of(4, 100), 4);
  edge.push(message_of(60), start);
  edge.push(message_of(60), start);
  edge.push(message_of(1), start);
  BOOST_TEST(edge.pop(start).has_value());
  BOOST_TEST(!edge.pop(start));
}

BOOST_AUTO_TEST_CASE(an_uncredited_send_is_a_defect) {
  outbound_edge edge(contract_of(1, 100), 1);
  edge.push(message_of(1), start);
  BOOST_CHECK_EXCEPTION(edge.push(message_of(1), start), defect, [](const defect& what) {
    return contains(what.what(), "edge 'a -> b'") && contains(what.what(), "un-credited send");
  });
}

BOOST_AUTO_TEST_CASE(a_message_larger_than_the_window_is_a_defect) {
  outbound_edge edge(contract_of(1, 100), 1);
  BOOST_CHECK_THROW(edge.push(message_of(101), start), defect);
  BOOST_CHECK_THROW(edge.push(message_of(1, 1), start), defect);  // another epoch
  BOOST_CHECK_THROW(edge.push(credit{}, start), defect);
}

BOOST_AUTO_TEST_CASE(credit_is_counted_once_and_never_beyond_the_window) {
  outbound_edge edge(contract_of(2, 100), 2);
  edge.push(message_of(10), start);
  BOOST_REQUIRE(edge.pop(start));
  BOOST_REQUIRE(edge.grant(head_of(0), {epoch_id{0}, 1, 10}).has_value());
  BOOST_REQUIRE(edge.grant(head_of(0), {epoch_id{0}, 1, 10}).has_value());  // duplicate
  BOOST_TEST(edge.credit_messages() == 2U);
  BOOST_TEST(edge.statistics().credits_dropped == 1U);
  const auto beyond = edge.grant(head_of(1), {epoch_id{0}, 0, 1});
  BOOST_REQUIRE(!beyond);
  BOOST_TEST(contains(beyond.error().message, "exceed the window"));
  const auto gap = edge.grant(head_of(5), {epoch_id{0}, 0, 0});
  BOOST_REQUIRE(!gap);
  BOOST_TEST(contains(gap.error().message, "expected 2, got 5"));
}

BOOST_AUTO_TEST_CASE(a_new_epoch_restarts_numbers_and_credit) {
  outbound_edge edge(contract_of(2, 100), 2);
  edge.push(message_of(100), start);
  BOOST_REQUIRE(edge.pop(start));
  edge.push(message_of(100), start);
  edge.reset(epoch_id{1});
  BOOST_TEST(edge.queued() == 0U);
  BOOST_TEST(edge.credit_messages() == 2U);
  BOOST_TEST(edge.credit_bytes_left() == 100U);
  BOOST_REQUIRE(edge.grant(head_of(0), {epoch_id{0}, 1, 100}).has_value());  // of the old epoch
  BOOST_TEST(edge.credit_bytes_left() == 100U);
  BOOST_TEST(edge.statistics().credits_dropped == 1U);
  edge.push(message_of(1, 1), start);
  BOOST_TEST(edge.pop(start)->head.sequence == 0U);
  BOOST_CHECK_THROW(edge.reset(epoch_id{1}), defect);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(inbound)

BOOST_AUTO_TEST_CASE(a_duplicate_is_dropped_and_counted) {
  inbound_edge edge(contract_of(4, 100));
  BOOST_TEST((edge.accept(head_of(0), message_of(1)).value() == arrival::fresh));
  BOOST_TEST((edge.accept(head_of(0), message_of(1)).value() == arrival::duplicate));
  BOOST_TEST((edge.accept(head_of(1), message_of(1)).value() == arrival::fresh));
  BOOST_TEST(edge.statistics().duplicates == 1U);
  BOOST_TEST(edge.statistics().messages == 2U);
}

BOOST_AUTO_TEST_CASE(a_gap_names_edge_expected_and_got) {
  inbound_edge edge(contract_of(4, 100));
  BOOST_REQUIRE(edge.accept(head_of(0), message_of(1)));
  const auto gap = edge.accept(head_of(2), message_of(1));
  BOOST_REQUIRE(!gap);
  BOOST_TEST((gap.error().code == errc::malformed));
  BOOST_TEST(gap.error().message == "edge 'a -> b': sequence gap, expected 1, got 2");
}

BOOST_AUTO_TEST_CASE(epochs_behind_are_dropped_and_ahead_refused) {
  inbound_edge edge(contract_of(4, 100));
  edge.reset(epoch_id{2});
  BOOST_TEST((edge.accept(head_of(9), message_of(1, 1)).value() == arrival::stale));
  BOOST_TEST(edge.statistics().stale == 1U);
  const auto ahead = edge.accept(head_of(0), message_of(1, 3));
  BOOST_REQUIRE(!ahead);
  BOOST_TEST(ahead.error().message == "edge 'a -> b': got epoch 3 ahead of the present epoch 2");
  BOOST_TEST((edge.accept(head_of(0), message_of(1, 2)).value() == arrival::fresh));
}

BOOST_AUTO_TEST_CASE(foreign_models_and_edges_are_refused) {
  inbound_edge edge(contract_of(4, 100));
  const auto model = edge.accept({edge_id{3}, 0, 43}, message_of(1));
  BOOST_REQUIRE(!model);
  BOOST_TEST((model.error().code == errc::mismatch));
  BOOST_TEST(contains(model.error().message, "fingerprint 43, expected 42"));
  const auto other = edge.accept({edge_id{4}, 0, 42}, message_of(1));
  BOOST_REQUIRE(!other);
  BOOST_TEST(contains(other.error().message, "edge 4, expected edge 3"));
  BOOST_TEST(!edge.accept(head_of(0), credit{}));
}

BOOST_AUTO_TEST_CASE(sending_without_credit_is_seen) {
  inbound_edge edge(contract_of(2, 100));
  BOOST_REQUIRE(edge.accept(head_of(0), message_of(60)));
  BOOST_TEST(!edge.accept(head_of(1), message_of(41)));
  inbound_edge few(contract_of(1, 100));
  BOOST_REQUIRE(few.accept(head_of(0), message_of(1)));
  const auto second = few.accept(head_of(1), message_of(1));
  BOOST_REQUIRE(!second);
  BOOST_TEST(contains(second.error().message, "sent without credit"));
}

BOOST_AUTO_TEST_CASE(credit_is_batched_until_half_the_window_or_idle) {
  inbound_edge edge(contract_of(8, 1000));
  for (std::uint64_t i = 0; i < 8; ++i) BOOST_REQUIRE(edge.accept(head_of(i), message_of(10)));
  for (int i = 0; i < 3; ++i) edge.consumed(epoch_id{0}, 10);
  BOOST_TEST(!edge.pop_credit());
  edge.consumed(epoch_id{0}, 10);
  auto granted = edge.pop_credit();
  BOOST_REQUIRE(granted);
  BOOST_TEST(granted->head.sequence == 0U);
  BOOST_TEST(std::get<credit>(granted->body).messages == 4U);
  BOOST_TEST(std::get<credit>(granted->body).bytes == 40U);
  for (int i = 0; i < 4; ++i) edge.consumed(epoch_id{0}, 10);
  granted = edge.pop_credit();
  BOOST_REQUIRE(granted);
  BOOST_TEST(granted->head.sequence == 1U);
  BOOST_TEST(!edge.pop_credit());
  BOOST_REQUIRE(edge.accept(head_of(8), message_of(1)));
  edge.consumed(epoch_id{0}, 1);
  BOOST_TEST(edge.pop_credit().has_value());  // nothing held: even one is returned
}

BOOST_AUTO_TEST_CASE(messages_of_an_old_epoch_give_no_credit) {
  inbound_edge edge(contract_of(2, 100));
  BOOST_REQUIRE(edge.accept(head_of(0), message_of(10)));
  edge.reset(epoch_id{1});
  edge.consumed(epoch_id{0}, 10);
  BOOST_TEST(!edge.pop_credit());
  BOOST_CHECK_THROW(edge.consumed(epoch_id{1}, 10), defect);  // never accepted
}

BOOST_AUTO_TEST_SUITE_END()
