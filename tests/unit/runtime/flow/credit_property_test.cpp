// Goal: credit is conserved and nothing deadlocks, whatever the interleaving. Method: seeded random
// schedules of two ends and the two queues between them; the sum is checked after every step.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <deque>
#include <random>

#include "runtime/flow/edge.hpp"

using namespace cedar;
using namespace cedar::flow;

namespace {

constexpr std::size_t queue_max = 5;

/// Both ends of one edge, and what is on its way between them.
class edge_model {
 public:
  edge_model(std::uint64_t seed, std::uint32_t messages, std::uint64_t bytes)
      : contract_{edge_id{1}, "model", 7, messages, bytes},
        producer_(contract_, queue_max),
        consumer_(contract_),
        random_(seed) {}

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }

  bool produce() {
    if (producer_.queued() == queue_max) return false;
    row_block block;
    block.epoch = producer_.epoch();
    block.layer = static_cast<std::uint32_t>(produced_);
    block.payload = freeze(kernels::buffer(pick(contract_.window_bytes + 1)));
    producer_.push(std::move(block), {});
    ++produced_;
    return true;
  }
  bool depart() {
    auto next = producer_.pop({});
    if (next) there_.push_back(std::move(*next));
    return next.has_value();
  }
  bool arrive() {
    if (there_.empty()) return false;
    const stamped_message next = std::move(there_.front());
    there_.pop_front();
    const auto judged = consumer_.accept(next.head, next.body);
    BOOST_REQUIRE(judged.has_value());
    BOOST_REQUIRE((*judged == arrival::fresh));
    BOOST_REQUIRE_EQUAL(std::get<row_block>(next.body).layer, arrived_++);
    held_.push_back(credit_bytes(next.body));
    return true;
  }
  bool consume() {
    if (held_.empty()) return false;
    const std::size_t index = pick(held_.size());  // any order
    consumer_.consumed(consumer_.epoch(), held_[index]);
    owed_messages_ += 1;
    owed_bytes_ += held_[index];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    return true;
  }
  bool give_credit() {
    auto next = consumer_.pop_credit();
    if (!next) return false;
    owed_messages_ -= std::get<credit>(next->body).messages;
    owed_bytes_ -= std::get<credit>(next->body).bytes;
    back_.push_back(std::move(*next));
    return true;
  }
  bool take_credit() {
    if (back_.empty()) return false;
    BOOST_REQUIRE(producer_.grant(back_.front().head, std::get<credit>(back_.front().body)));
    back_.pop_front();
    return true;
  }

  void check_conserved() const {
    std::uint64_t messages = producer_.credit_messages() + there_.size() + held_.size();
    std::uint64_t bytes = producer_.credit_bytes_left();
    for (const auto& next : there_) bytes += credit_bytes(next.body);
    for (const std::uint64_t size : held_) bytes += size;
    for (const auto& next : back_) {
      messages += std::get<credit>(next.body).messages;
      bytes += std::get<credit>(next.body).bytes;
    }
    BOOST_REQUIRE_EQUAL(messages + owed_messages_, contract_.window_messages);
    BOOST_REQUIRE_EQUAL(bytes + owed_bytes_, contract_.window_bytes);
  }

  bool step() {
    switch (pick(6)) {
      case 0:
        return produce();
      case 1:
        return depart();
      case 2:
        return arrive();
      case 3:
        return consume();
      case 4:
        return give_credit();
      default:
        return take_credit();
    }
  }

  /// Everything but production, until nothing moves.
  void settle() {
    while (depart() || arrive() || consume() || give_credit() || take_credit()) check_conserved();
  }

  std::uint64_t produced() const { return produced_; }
  std::uint64_t arrived() const { return arrived_; }
  const outbound_edge& producer() const { return producer_; }

 private:
  edge_contract contract_;
  outbound_edge producer_;
  inbound_edge consumer_;
  std::mt19937_64 random_;
  std::deque<stamped_message> there_, back_;
  std::deque<std::uint64_t> held_;
  std::uint64_t owed_messages_ = 0, owed_bytes_ = 0, produced_ = 0, arrived_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(credit_property)

BOOST_AUTO_TEST_CASE(credit_is_conserved_and_everything_arrives) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      edge_model model(seed, 1 + static_cast<std::uint32_t>(seed % 7), 1 + seed * 37 % 5000);
      for (int i = 0; i < 400; ++i) {
        model.step();
        model.check_conserved();
      }
      model.settle();
      BOOST_REQUIRE_EQUAL(model.arrived(), model.produced());  // nobody waits for ever
    }
  }
}

BOOST_AUTO_TEST_CASE(a_stalled_consumer_bounds_what_the_producer_holds) {
  edge_model model(11, 4, 1000);
  std::uint64_t departed = 0;
  for (int i = 0; i < 10000; ++i) {
    model.produce();
    if (model.depart()) ++departed;
  }
  BOOST_TEST(departed <= 4U);
  BOOST_TEST(model.producer().queued() <= queue_max);
  BOOST_TEST(model.produced() == departed + model.producer().queued());
}

BOOST_AUTO_TEST_SUITE_END()
