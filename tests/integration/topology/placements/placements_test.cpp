// Goal: wherever tiny-40 is cut and wherever its parts, its experts, its index keys and the rows of
// its Engram tables lie, the answers are those of one process, bit for bit; the declared edges
// carry the declared bytes; no process maps what is not placed on it, and no one but the drafter's
// its draft blocks. Method: all 39 cuts with both kinds of splits and 100 random placements, as
// nodes of one process; 12 of them, or all (the suite that is disabled by default), as processes
// over UCX.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <thread>

#include "runtime/model/manifest.hpp"
#include "tests/integration/topology/placements/placement.hpp"
#include "tests/support/temporary_folder.hpp"
#include "topology/launch/cluster.hpp"

using namespace cedar;
using namespace cedar::test;
namespace data = boost::unit_test::data;

namespace {

constexpr int cuts_count = 39;
constexpr int random_count = 100;

/// Number `index` of all placements: both splits of every cut, then the random ones.
placement placement_of(int index) {
  if (index < 2 * cuts_count) return two_way(static_cast<std::uint32_t>(index / 2), index % 2 == 1);
  return random_placement(static_cast<std::uint64_t>(index));
}

void check_edges(const topology::plan& plan, const expected_run& expected,
                 const std::vector<topology::node_report>& reports, bool keeps = false) {
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> bytes;  // by edge and step
  for (const topology::node_report& report : reports)
    for (const topology::traced& event : report.events)
      if (event.kind == static_cast<std::uint8_t>(trace_kind::message))
        bytes[{event.track, event.step}] += event.bytes;
  for (const topology::edge_plan& edge : plan.edges()) {
    if (edge.kind == topology::edge_kind::tap) continue;
    // What a verdict keeps does not stand in the step's table.
    if (keeps && edge.kind == topology::edge_kind::verdict) {
      std::erase_if(bytes, [&](const auto& seen) { return seen.first.first == edge.name; });
      continue;
    }
    for (std::size_t i = 0; i < expected.tables.size(); ++i) {
      const flow::step_table& table = expected.tables[i];
      topology::draft_counts drafts{expected.orders[i].size()};
      for (const flow::draft_order& order : expected.orders[i]) drafts.tokens += order.tokens_max;
      const auto carried = bytes.extract(std::pair(edge.name, table.step.value));
      const std::uint64_t declared =
          plan.expected_bytes(edge.id, table, drafts, expected.routes[i], expected.addresses[i]);
      BOOST_TEST((carried ? carried.mapped() : 0) == declared,
                 edge.name << ", step " << table.step.value << ": "
                           << (carried ? carried.mapped() : 0) << " bytes, declared " << declared);
    }
  }
  BOOST_TEST(bytes.empty(), (bytes.empty() ? "" : "not declared: " + bytes.begin()->first.first));
}

/// Every part of the model computes every row of a step once, in however many stretches; but
/// experts those that chose them, and indexers may be behind.
void check_rows(const topology::plan& plan, const expected_run& expected,
                const std::vector<topology::node_report>& reports) {
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> rows;  // by unit and step
  for (const topology::node_report& report : reports)
    for (const topology::traced& event : report.events)
      if (event.kind == static_cast<std::uint8_t>(trace_kind::compute))
        rows[{event.track, event.step}] += event.rows;
  for (const topology::unit_plan& unit : plan.units()) {
    if (std::holds_alternative<topology::scheduler_role>(unit.role) ||
        std::holds_alternative<topology::drafter_role>(unit.role) ||
        std::holds_alternative<topology::experts_role>(unit.role) ||
        std::holds_alternative<topology::indexer_role>(unit.role))
      continue;
    for (const flow::step_table& table : expected.tables)
      BOOST_TEST((rows[{unit.name, table.step.value}]) == table.rows_count(),
                 unit.name << ", step " << table.step.value);
  }
}

std::set<std::string> tensors_of_drafter() {
  std::set<std::string> out;
  for (const auto& tensor : model::manifest(model_of_placements().config()))
    if (model::in_drafter(tensor)) out.insert(tensor.name);
  return out;
}

/// By its name: "layers.3.ffn.experts.5.w1.weight".
bool is_of_slice(const std::string& tensor, const model::expert_slice& slice) {
  const std::string part = ".ffn.experts.";
  const auto at = tensor.find(part);
  return tensor.starts_with("layers.") && at != std::string::npos &&
         slice.holds(static_cast<std::uint32_t>(std::stoul(tensor.substr(7))),
                     static_cast<std::uint32_t>(std::stoul(tensor.substr(at + part.size()))));
}

bool is_of_stage(const std::string& tensor, const topology::stage_role& stage) {
  return tensor.find(".engram.embed.") == std::string::npos && tensor.starts_with("layers.") &&
         std::stoul(tensor.substr(7)) >= stage.layers.first &&
         std::stoul(tensor.substr(7)) <= stage.layers.last &&
         std::ranges::none_of(stage.experts_elsewhere, [&](const model::expert_slice& slice) {
           return is_of_slice(tensor, slice);
         });
}

/// By its name: "layers.1.engram.embed.weight".
bool is_of_tables(const std::string& tensor, const topology::engram_role& engram) {
  return std::ranges::count(engram.shards, std::stoul(tensor.substr(7)),
                            &model::engram_shard::layer) > 0;
}

/// Every process maps the tensors of its units, and no others.
void check_weights(const topology::plan& plan, const std::vector<topology::node_report>& reports) {
  for (const topology::node_report& report : reports) {
    std::set<std::string> placed;
    for (const topology::unit_id unit : plan.find_node(report.node)->units) {
      const topology::unit_role& role = plan[unit].role;
      if (std::holds_alternative<topology::drafter_role>(role)) placed.merge(tensors_of_drafter());
      for (const auto& tensor : model_of_placements().checkpoint().tensors()) {
        const std::string& name = tensor.name;
        const bool table = name.find(".engram.embed.") != std::string::npos;
        const auto* stage = std::get_if<topology::stage_role>(&role);
        const auto* experts = std::get_if<topology::experts_role>(&role);
        const auto* engram = std::get_if<topology::engram_role>(&role);
        const bool of_unit = std::holds_alternative<topology::embedding_role>(role)
                                 ? name == "embed.weight"
                             : engram != nullptr ? table && is_of_tables(name, *engram)
                             : std::holds_alternative<topology::head_role>(role)
                                 ? name == "norm.weight" || name == "head.weight"
                             : experts != nullptr ? is_of_slice(name, experts->slice)
                                                  : stage != nullptr && is_of_stage(name, *stage);
        if (of_unit) placed.insert(name);
      }
    }
    BOOST_TEST(std::set<std::string>(report.tensors.begin(), report.tensors.end()) == placed,
               boost::test_tools::per_element());
  }
}

bool is_message_of(const topology::traced& event, const topology::edge_plan& edge) {
  return event.kind == static_cast<std::uint8_t>(trace_kind::message) && event.track == edge.name;
}

/// Nothing waits for what the drafter hears of the last step: it may still be on its way.
bool all_heard_by_drafter(const topology::plan& plan, const std::vector<flow::step_table>& steps,
                          const std::vector<topology::node_report>& reports) {
  return std::ranges::all_of(plan.edges(), [&](const topology::edge_plan& edge) {
    if (plan[edge.consumer].name != "drafter" || edge.kind == topology::edge_kind::draft_orders)
      return true;
    std::size_t messages = 0;
    for (const topology::node_report& report : reports)
      for (const topology::traced& event : report.events) messages += is_message_of(event, edge);
    const auto wanted = std::ranges::count_if(steps, [&](const flow::step_table& table) {
      return plan.expected_bytes(edge.id, table, {}) > 0;
    });
    return messages == static_cast<std::size_t>(wanted);
  });
}

/// What every node recorded, with all that belongs to the steps.
std::vector<topology::node_report> whole_reports(topology::cluster& cluster,
                                                 const std::vector<flow::step_table>& steps) {
  std::vector<topology::node_report> out = cluster.reports();
  for (int more = 0; more < 1000 && !all_heard_by_drafter(cluster.topology(), steps, out); ++more) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    for (topology::node_report& late : cluster.reports()) {
      auto& events = std::ranges::find(out, late.node, &topology::node_report::node)->events;
      events.insert(events.end(), late.events.begin(), late.events.end());
    }
  }
  return out;
}
/// A placement that serves.
struct placed_cluster {
  explicit placed_cluster(const placement& p) : cluster(options_of(p)) {
    const result<void> started = cluster.start();
    BOOST_REQUIRE_MESSAGE(started.has_value(), (started ? "" : started.error().message));
  }

  std::vector<session::usage> generate(const std::vector<session::generation_request>& requests) {
    session::generation_sink sink;
    sink.on_row = [&](std::size_t request, const session::row_event& row) {
      rows.push_back({request,
                      row.position,
                      row.token,
                      row.log_probability,
                      {row.logits.begin(), row.logits.end()}});
    };
    const auto used = cluster.generate(requests, sink);
    BOOST_REQUIRE_MESSAGE(used.has_value(), (used ? "" : used.error().message));
    return *used;
  }
  session::scheduler_limits limits() const {
    return topology::scheduler_limits_of(cluster.topology(), model_of_placements().config());
  }
  void check_rows(const expected_run& expected) const {
    BOOST_REQUIRE_EQUAL(rows.size(), expected.rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      BOOST_REQUIRE_MESSAGE(rows[i] == expected.rows[i],
                            "request " << rows[i].request << ", position " << rows[i].position);
  }

  topology::cluster_options options_of(const placement& p) const {
    topology::cluster_options options;
    options.topology = folder.write("t.yaml", topology_text(p));
    options.model = model_of_placements().folder();
    options.program = CEDAR_PROGRAM;
    options.trace_events_max = 100'000;
    return options;
  }

  temporary_folder folder;
  topology::cluster cluster;
  std::vector<placed_row> rows;
};

void check(placement p, bool processes) {
  p.processes = processes;
  BOOST_TEST_INFO_SCOPE(p);
  placed_cluster placed(p);
  topology::cluster& cluster = placed.cluster;
  placed.generate(placement_requests(p.bounded));
  const expected_run& expected = expected_of(placed.limits(), p.bounded);
  placed.check_rows(expected);
  const auto reports = whole_reports(cluster, expected.tables);
  check_edges(cluster.topology(), expected, reports);
  check_rows(cluster.topology(), expected, reports);
  if (processes) {
    BOOST_TEST(reports.size() == cluster.topology().nodes().size());
    check_weights(cluster.topology(), reports);
  }
}

/// The next turn of every request begins with what its first one left at every stage.
void check_turns(placement p, bool processes) {
  p.processes = processes;
  p.prefix_positions = 512;
  p.bounded = true;
  BOOST_TEST_INFO_SCOPE(p);
  placed_cluster placed(p);
  const auto requests = placement_requests(true);
  placed.generate(requests);
  const auto used = placed.generate(next_turn(requests, placed.rows));
  BOOST_TEST(used[0].cached_tokens == 40U);  // 37 of the prompt, 3 of the answer
  const expected_run expected = expected_of_turns(placed.limits(), requests);
  placed.check_rows(expected);
  check_edges(placed.cluster.topology(), expected, placed.cluster.reports(), true);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(placements)

BOOST_DATA_TEST_CASE(next_turns_begin_with_what_was_left,
                     data::make({2, 9, 24, 37, 41, 60, 80, 101, 133}), index) {
  check_turns(placement_of(index), index == 101);
}

BOOST_DATA_TEST_CASE(in_one_process, data::xrange(2 * cuts_count + random_count), index) {
  check(placement_of(index), false);
}

// Free cuts and splits of both kinds in encoder and decoder, then random placements.
BOOST_DATA_TEST_CASE(as_processes, data::make({2, 9, 24, 37, 38, 41, 56, 71, 80, 101, 133, 166}),
                     index) {
  check(placement_of(index), true);
}

// Cuts between the target layers and before them, then random placements.
BOOST_DATA_TEST_CASE(with_a_drafter_in_one_process,
                     data::make({3, 24, 37, 38, 57, 71, 72, 73, 74, 75, 76, 77}) +
                         data::xrange(2 * cuts_count, 2 * cuts_count + 16),
                     index) {
  check(with_drafter(placement_of(index), static_cast<std::uint64_t>(index)), false);
}

// Free and split cuts, then random placements.
BOOST_DATA_TEST_CASE(with_experts_and_tables_elsewhere_in_one_process,
                     data::make({3, 40, 57}) +
                         data::xrange(2 * cuts_count + 20, 2 * cuts_count + 44),
                     index) {
  const auto seed = static_cast<std::uint64_t>(index);
  check(with_shards(with_experts(placement_of(index), seed), seed), false);
}

BOOST_DATA_TEST_CASE(with_experts_elsewhere_and_a_drafter, data::make({71, 75, 90, 91, 92}),
                     index) {
  const auto seed = static_cast<std::uint64_t>(index);
  check(with_drafter(with_experts(placement_of(index), seed), seed), false);
}

// Cuts inside the decoder in both modes, then random placements; every third with experts too.
BOOST_DATA_TEST_CASE(with_indexers_in_one_process,
                     data::make({46, 57}) + data::xrange(2 * cuts_count + 50, 2 * cuts_count + 62),
                     index) {
  const auto seed = static_cast<std::uint64_t>(index);
  const placement p = with_indexers(placement_of(index), seed);
  check(index % 3 == 0 ? with_experts(p, seed) : p, false);
}

BOOST_DATA_TEST_CASE(with_indexers_and_a_drafter, data::make({73, 95, 96}), index) {
  const auto seed = static_cast<std::uint64_t>(index);
  check(with_drafter(with_indexers(placement_of(index), seed), seed), false);
}

BOOST_DATA_TEST_CASE(next_turns_begin_with_what_indexers_kept, data::make({41, 99}), index) {
  check_turns(with_indexers(placement_of(index), static_cast<std::uint64_t>(index)), false);
}

BOOST_DATA_TEST_CASE(with_indexers_as_processes, data::make({49}), index) {
  check(with_indexers(placement_of(index), static_cast<std::uint64_t>(index)), true);
}

BOOST_DATA_TEST_CASE(with_experts_elsewhere_as_processes, data::make({57, 97}), index) {
  check(with_experts(placement_of(index), static_cast<std::uint64_t>(index)), true);
}

BOOST_DATA_TEST_CASE(with_tables_elsewhere_as_processes, data::make({38, 84}), index) {
  check(with_shards(placement_of(index), static_cast<std::uint64_t>(index)), true);
}

BOOST_DATA_TEST_CASE(with_a_drafter_as_processes, data::make({38, 72, 75, 80, 101}), index) {
  check(with_drafter(placement_of(index), static_cast<std::uint64_t>(index)), true);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(every_placement, *boost::unit_test::disabled())

BOOST_DATA_TEST_CASE(as_processes, data::xrange(2 * cuts_count + random_count), index) {
  check(placement_of(index), true);
}

BOOST_AUTO_TEST_SUITE_END()
