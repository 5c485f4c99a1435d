#include "tests/unit/actors/test_system.hpp"

#include "actors/error_bridge.hpp"

namespace cedar::test {

namespace {
constexpr std::uint64_t fingerprint = 77;
}

test_system::configuration::configuration() {
  set("scheduler.policy", caf::atom("testing"));
}

test_system::test_system()
    : system_(config_),
      jobs_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())) {
  jobs_.run();
}

test_system::~test_system() {
  for (const caf::actor& actor : all_) caf::anon_send_exit(actor, caf::exit_reason::kill);
  jobs_.run();
}

actors::packet_sink test_system::packet_recorder(std::vector<flow::stamped_message>& to) {
  return keep(
      system_.spawn([&to](actors::packet_sink::pointer) -> actors::packet_sink::behavior_type {
        return {[&to](const actors::packet_ref& packet) { to.push_back(*packet); }};
      }));
}

actors::fault_sink test_system::fault_recorder(std::vector<actors::fault>& to) {
  return keep(
      system_.spawn([&to](actors::fault_sink::pointer) -> actors::fault_sink::behavior_type {
        return {[&to](const actors::fault_ref& what) { to.push_back(*what); }};
      }));
}

tl::unexpected<error> test_system::failed(const caf::error& what) {
  return fail(actors::from_caf(system_, what));
}

actors::edge_end edge_end_of(std::uint32_t edge, bool outbound, const std::string& carries,
                             const actors::packet_sink& peer, std::uint32_t window_messages,
                             std::uint32_t layer) {
  actors::edge_end end;
  end.contract = {edge_id{edge}, "edge-" + std::to_string(edge), fingerprint, window_messages,
                  std::uint64_t{window_messages} * 1000};
  end.outbound = outbound;
  end.carries = carries;
  end.layer = layer;
  end.queue_messages_max = 4;
  end.peer = peer;
  return end;
}

actors::packet_ref packet_of(std::uint32_t edge, std::uint64_t sequence, flow::message message) {
  return std::make_shared<const flow::stamped_message>(
      flow::stamped_message{{edge_id{edge}, sequence, fingerprint}, std::move(message)});
}

flow::step_table table_of(std::uint64_t step) {
  flow::step_table table;
  table.step = step_id{step};
  table.spans = {{request_id{1}, 0, 1, 0}};
  table.tokens = {5};
  return table;
}

flow::row_block block_of(std::uint64_t step, flow::row_kind kind, std::uint32_t layer) {
  flow::row_block block;
  block.kind = kind;
  block.step = step_id{step};
  block.layer = layer;
  block.spans = {{request_id{1}, 0, 1, 0}};
  block.rows_count = 1;
  block.row_bytes = 64;
  block.payload = flow::freeze(kernels::buffer(64));
  return block;
}

}  // namespace cedar::test
