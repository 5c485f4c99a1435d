// Goal: whatever a network does to frames, a consumer computes only with the right messages, once
// and in order; else it says by name what is wrong. Method: an edge between two nodes of a loopback
// hub whose ports misbehave by seed, under simulated time; every message accepted is compared with
// what was sent. A failing seed is printed, and gives the same run again.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <random>

#include "runtime/flow/edge.hpp"
#include "runtime/transport/faulty_port.hpp"
#include "runtime/transport/loopback_hub.hpp"
#include "runtime/wire/decode.hpp"
#include "runtime/wire/encode.hpp"

using namespace cedar;
using namespace cedar::transport;
using namespace std::chrono_literals;

namespace {

const node_id producer_node{1}, consumer_node{2};
constexpr std::size_t messages_count = 60;
constexpr std::size_t queue_max = 4;

/// The k-th message of a run: every field and byte follows from k.
flow::row_block message_of(std::uint64_t k) {
  flow::row_block block;
  block.step = step_id{k + 1};
  block.spans = {
      {request_id{k}, static_cast<std::uint32_t>(k), 1 + static_cast<std::uint32_t>(k % 5), 0}};
  block.rows_count = block.spans[0].rows_count;
  block.row_bytes = 64;
  kernels::buffer bytes(block.rows_count * 64);
  for (std::size_t i = 0; i < bytes.bytes(); ++i) {
    bytes.data()[i] = static_cast<std::byte>((i + k * 17) & 0xff);
  }
  block.payload = flow::freeze(std::move(bytes));
  return block;
}

bool equal(const flow::row_block& a, const flow::row_block& b) {
  const auto left = flow::bytes_of(a.payload), right = flow::bytes_of(b.payload);
  return a.step == b.step && a.spans == b.spans && a.rows_count == b.rows_count &&
         std::equal(left.begin(), left.end(), right.begin(), right.end());
}

/// One end of the link: decodes what comes, gives up its peer at the first thing that is wrong.
class link_end : public port_handler {
 public:
  void on_frame(node_id from, flow::received_frame frame) override {
    if (!trouble.empty()) return;
    auto decoded = wire::decode(std::move(frame));
    result<void> handled = decoded ? take(*decoded) : fail(decoded.error());
    if (handled) return;
    trouble = handled.error().message;
    door->disconnect(from, handled.error());
  }
  void on_peer_up(node_id) override {}
  void on_peer_lost(node_id, const error& reason) override { loss = reason.message; }

  virtual result<void> take(wire::decoded& message) = 0;

  port* door = nullptr;
  std::string trouble;  ///< the first thing that this end found wrong
  std::string loss;  ///< what the port said
};

class producing_end final : public link_end {
 public:
  explicit producing_end(const flow::edge_contract& contract) : edge(contract, queue_max) {}
  result<void> take(wire::decoded& message) override {
    const auto* credit = std::get_if<flow::credit>(&message.message);
    if (credit == nullptr) return fail(errc::malformed, "not a credit");
    return edge.grant(message.envelope, *credit);
  }
  void send() {
    while (produced < messages_count && edge.queued() < queue_max) {
      edge.push(message_of(produced++), {});
    }
    while (auto next = edge.pop({})) {
      door->send(consumer_node, wire::encode(next->head, next->body));
    }
  }
  flow::outbound_edge edge;
  std::uint64_t produced = 0;
};

class consuming_end final : public link_end {
 public:
  explicit consuming_end(const flow::edge_contract& contract) : edge(contract) {}
  result<void> take(wire::decoded& message) override {
    const auto judged = edge.accept(message.envelope, message.message);
    if (!judged) return fail(judged.error());
    if (*judged != flow::arrival::fresh) return {};
    // This is where a stage would compute: the message must be the right one.
    BOOST_REQUIRE(equal(std::get<flow::row_block>(message.message), message_of(accepted)));
    ++accepted;
    held.push_back(flow::credit_bytes(message.message));
    return {};
  }
  void work(std::mt19937_64& random) {
    while (!held.empty() && random() % 4 != 0) {
      edge.consumed(epoch_id{0}, held.back());
      held.pop_back();
    }
    while (auto credit = edge.pop_credit()) {
      door->send(producer_node, wire::encode(credit->head, credit->body));
    }
  }
  flow::inbound_edge edge;
  std::uint64_t accepted = 0;
  std::vector<std::uint64_t> held;
};

struct outcome {
  std::uint64_t accepted;
  std::string trouble;  ///< what the consumer found, else the producer, else the port
  fault_counts there, back;
  std::uint64_t duplicates;
};

outcome run(const fault_plan& there, const fault_plan& back) {
  faulty_port::time_point now{};
  const auto clock = [&now] { return now; };
  const flow::edge_contract contract{edge_id{1}, "producer -> consumer", 99, 5, 2000};
  loopback_hub hub;
  producing_end producer(contract);
  consuming_end consumer(contract);
  const auto producer_door = hub.open(producer_node, "producer", producer);
  const auto consumer_door = hub.open(consumer_node, "consumer", consumer);
  faulty_port producer_port(*producer_door, there, clock);
  faulty_port consumer_port(*consumer_door, back, clock);
  producer.door = &producer_port;
  consumer.door = &consumer_port;
  producer_port.connect(consumer_node, consumer_port.address(), 1s);
  std::mt19937_64 random(there.seed);
  for (int round = 0; round < 2000; ++round) {
    producer.send();
    hub.deliver(1 + random() % 4);
    consumer.work(random);
    now += 1ms;
    // A network that holds a frame back lets it go in the end.
    producer_port.release(round % 16 == 15);
    consumer_port.release(round % 16 == 15);
  }
  BOOST_REQUIRE_LE(producer.edge.queued(), queue_max);
  std::string trouble = consumer.trouble;
  for (const std::string& other : {producer.trouble, consumer.loss}) {
    if (trouble.empty()) trouble = other;
  }
  return {consumer.accepted, trouble, producer_port.counts(), consumer_port.counts(),
          consumer.edge.statistics().duplicates};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr std::uint64_t seeds_count = 100;

}  // namespace

BOOST_AUTO_TEST_SUITE(faulty_edges)

BOOST_AUTO_TEST_CASE(without_faults_everything_arrives) {
  for (std::uint64_t seed = 1; seed <= seeds_count; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const outcome got = run({.seed = seed}, {.seed = seed + 1});
      BOOST_TEST(got.accepted == messages_count);
      BOOST_TEST(got.trouble == "");
      BOOST_TEST(got.there.sent == messages_count);
    }
  }
}

BOOST_AUTO_TEST_CASE(duplicates_are_harmless_and_counted) {
  for (std::uint64_t seed = 1; seed <= seeds_count; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const outcome got =
          run({.seed = seed, .duplicate = 0.3}, {.seed = seed + 1, .duplicate = 0.3});
      BOOST_TEST(got.accepted == messages_count);
      BOOST_TEST(got.trouble == "");
      BOOST_TEST(got.duplicates == got.there.duplicated);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_lost_message_is_a_named_gap_or_the_last_one) {
  std::uint64_t gaps = 0;
  for (std::uint64_t seed = 1; seed <= seeds_count; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const outcome got = run({.seed = seed, .drop = 0.02}, {.seed = seed + 1});
      if (got.there.dropped == 0) {
        BOOST_TEST(got.accepted == messages_count);
      } else if (got.trouble.empty()) {
        // Nothing followed the lost ones: whoever waits for the step's input has a deadline.
        BOOST_TEST(got.accepted + got.there.dropped == got.there.sent);
      } else {
        BOOST_TEST(contains(got.trouble, "edge 'producer -> consumer': sequence gap, expected " +
                                             std::to_string(got.accepted)),
                   got.trouble);
        ++gaps;
      }
    }
  }
  BOOST_TEST(gaps > seeds_count / 4);
}

BOOST_AUTO_TEST_CASE(a_lost_credit_is_a_named_gap_or_ends_in_waiting) {
  std::uint64_t gaps = 0;
  for (std::uint64_t seed = 1; seed <= seeds_count; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const outcome got = run({.seed = seed}, {.seed = seed + 1, .drop = 0.1});
      if (got.back.dropped == 0) BOOST_TEST(got.accepted == messages_count);
      if (got.trouble.empty()) continue;
      BOOST_TEST(contains(got.trouble, "credit: edge 'producer -> consumer': sequence gap"),
                 got.trouble);
      ++gaps;
    }
  }
  BOOST_TEST(gaps > seeds_count / 4);
}

BOOST_AUTO_TEST_CASE(a_damaged_frame_never_becomes_a_message) {
  std::uint64_t found = 0;
  for (std::uint64_t seed = 1; seed <= seeds_count; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const outcome got = run({.seed = seed, .corrupt = 0.05}, {.seed = seed + 1, .corrupt = 0.05});
      if (got.there.corrupted + got.back.corrupted == 0) {
        BOOST_TEST(got.accepted == messages_count);
      } else {
        BOOST_TEST(contains(got.trouble, "frame: checksum"), got.trouble);
        ++found;
      }
    }
  }
  BOOST_TEST(found > seeds_count / 2);
}

BOOST_AUTO_TEST_CASE(swapped_and_late_frames_are_a_named_gap_or_harmless) {
  std::uint64_t gaps = 0, clean = 0;
  for (std::uint64_t seed = 1; seed <= seeds_count; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const outcome got =
          run({.seed = seed, .reorder = 0.01, .delay = 0.01, .delay_max = 20ms},
              {.seed = seed + 1, .reorder = 0.02, .delay = 0.02, .delay_max = 20ms});
      if (got.trouble.empty()) {
        BOOST_TEST(got.accepted == messages_count);
        ++clean;
      } else {
        BOOST_TEST(contains(got.trouble, "sequence gap, expected"), got.trouble);
        ++gaps;
      }
    }
  }
  BOOST_TEST(gaps > 0U);
  BOOST_TEST(clean > 0U);
}

BOOST_AUTO_TEST_CASE(a_broken_connection_is_reported) {
  for (std::uint64_t seed = 1; seed <= seeds_count; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const outcome got = run({.seed = seed, .disconnect = 0.05}, {.seed = seed + 1});
      if (got.there.disconnected == 0) {
        BOOST_TEST(got.accepted == messages_count);
      } else {
        BOOST_TEST(contains(got.trouble, "dropped the connection"), got.trouble);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(everything_at_once_is_named_or_harmless) {
  for (std::uint64_t seed = 1; seed <= 10 * seeds_count; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const fault_plan faults{.seed = seed,
                              .drop = 0.01,
                              .duplicate = 0.05,
                              .reorder = 0.01,
                              .corrupt = 0.005,
                              .delay = 0.05,
                              .disconnect = 0.002,
                              .delay_max = 10ms};
      fault_plan back = faults;
      back.seed = seed + 1;
      const outcome got = run(faults, back);
      // Every message accepted was compared in the run. Here: nothing ends short without a word,
      // except where something was lost and nothing followed.
      const bool something_lost = got.there.dropped + got.back.dropped > 0;
      BOOST_TEST((got.accepted == messages_count || !got.trouble.empty() || something_lost));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_run) {
  const fault_plan faults{
      .seed = 7, .drop = 0.01, .duplicate = 0.1, .reorder = 0.02, .delay = 0.1, .delay_max = 10ms};
  const outcome first = run(faults, faults), second = run(faults, faults);
  BOOST_TEST(first.accepted == second.accepted);
  BOOST_TEST(first.trouble == second.trouble);
  BOOST_TEST(first.there.delayed == second.there.delayed);
  BOOST_TEST(first.there.sent == second.there.sent);
}

BOOST_AUTO_TEST_SUITE_END()
