// An actor system whose test decides when messages are handled, and actors that write down what
// they get.
#pragma once

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"

namespace cedar::test {

class test_system {
 public:
  test_system();
  ~test_system();
  test_system(const test_system&) = delete;
  test_system& operator=(const test_system&) = delete;

  caf::actor_system& system() { return system_; }
  /// Handles everything that waits.
  void run() { jobs_.run(); }
  void advance(std::chrono::milliseconds time) {
    jobs_.advance_time(time);
    run();
  }

  /// Writes packets into `to`, which outlives the system.
  actors::packet_sink packet_recorder(std::vector<flow::stamped_message>& to);
  actors::fault_sink fault_recorder(std::vector<actors::fault>& to);

  /// Ends the actor with the system.
  template <class Handle>
  Handle keep(Handle actor) {
    all_.push_back(caf::actor_cast<caf::actor>(actor));
    return actor;
  }

  /// Asks and runs everything until the answer is there.
  template <class Answer, class Handle, class... Question>
  result<Answer> ask(const Handle& actor, const Question&... question) {
    const caf::scoped_actor self{system_};
    auto asked = self->request(actor, caf::infinite, question...);
    run();
    result<Answer> out;
    asked.receive([&](const Answer& answer) { out = answer; },
                  [&](const caf::error& what) { out = failed(what); });
    return out;
  }

 private:
  struct configuration : caf::actor_system_config {
    configuration();
  };
  tl::unexpected<error> failed(const caf::error& what);

  configuration config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& jobs_;
  std::vector<caf::actor> all_;
};

/// The end of an edge at a producer or a consumer; both ends have the same contract.
actors::edge_end edge_end_of(std::uint32_t edge, bool outbound, const std::string& carries,
                             const actors::packet_sink& peer, std::uint32_t window_messages = 2,
                             std::uint32_t layer = 0);

/// `message` as the `sequence`-th of `edge`.
actors::packet_ref packet_of(std::uint32_t edge, std::uint64_t sequence, flow::message message);

flow::step_table table_of(std::uint64_t step);
flow::row_block block_of(std::uint64_t step, flow::row_kind kind, std::uint32_t layer = 0);

}  // namespace cedar::test
