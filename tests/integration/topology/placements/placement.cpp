#include "tests/integration/topology/placements/placement.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <tuple>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"
#include "runtime/model/sharing.hpp"
#include "tests/integration/support/golden_prompt.hpp"

namespace cedar::test {

namespace {

constexpr std::uint32_t context = 64;
constexpr std::uint32_t requests_max = 3;

template <class T>
T value_of(result<T> made) {
  BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? std::string() : made.error().message));
  return std::move(*made);
}

std::uint32_t layers() {
  return model_of_placements().config().layers;
}

std::uint32_t last_node_of(const placement& p) {
  std::uint32_t last = std::max({p.engram_node, p.head_node, p.drafter_node.value_or(0)});
  for (const std::uint32_t node : p.nodes) last = std::max(last, node);
  for (const placed_experts& slice : p.experts) last = std::max(last, slice.node);
  for (const placed_index& index : p.indexers)
    for (const std::uint32_t node : index.nodes) last = std::max(last, node);
  for (const placed_shard& shard : p.shards) last = std::max(last, shard.node);
  return last;
}

std::set<std::uint32_t> split_owners(const placement& p) {
  std::set<std::uint32_t> owners;
  for (const std::uint32_t cut : p.cuts)
    for (const std::uint32_t owner : model::split_owners(model_of_placements().schedule(), cut))
      owners.insert(owner);
  return owners;
}

}  // namespace

const stage::model_source& model_of_placements() {
  static const auto source = value_of(stage::model_source::open(checkpoint_of("tiny-40")));
  return *source;
}

std::ostream& operator<<(std::ostream& out, const placement& p) {
  out << "cuts after";
  for (const std::uint32_t cut : p.cuts) out << ' ' << cut;
  out << ", stages on nodes";
  for (const std::uint32_t node : p.nodes) out << ' ' << node;
  out << ", gather";
  for (const std::uint32_t owner : p.gather) out << ' ' << owner;
  if (p.drafter_node) out << ", drafter on node " << *p.drafter_node;
  for (const placed_experts& slice : p.experts) {
    out << ", experts";
    for (const std::uint32_t id : slice.ids) out << ' ' << id;
    out << " of layers " << slice.first << '-' << slice.last << " on node " << slice.node;
  }
  for (const placed_index& index : p.indexers) {
    out << ", index of layer " << index.owner << " on nodes";
    for (const std::uint32_t node : index.nodes) out << ' ' << node;
  }
  for (const placed_shard& shard : p.shards)
    out << ", rows " << shard.first << '-' << shard.last << " of the table of layer " << shard.layer
        << " on node " << shard.node;
  return out << ", " << p.rows_per_step << " rows a step, " << (p.bounded ? "bounded" : "exact");
}

placement two_way(std::uint32_t layer, bool gather) {
  placement p;
  p.cuts = {layer};
  p.nodes = {0, 1};
  p.head_node = 1;
  p.bounded = layer % 2 == 0;
  if (gather) p.gather = split_owners(p);
  return p;
}

placement random_placement(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint32_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
  };
  placement p;
  std::set<std::uint32_t> cuts;
  const std::size_t count = 1 + below(4);
  while (cuts.size() < count) cuts.insert(below(layers() - 1));
  p.cuts.assign(cuts.begin(), cuts.end());
  // Nodes are numbered as they are met, so that none is empty; the first stage is at the client.
  std::uint32_t nodes = 1;
  const auto any_node = [&] {
    const std::uint32_t node = below(std::min(nodes + 1, 4U));
    nodes = std::max(nodes, node + 1);
    return node;
  };
  p.nodes.push_back(0);
  while (p.nodes.size() <= count) p.nodes.push_back(any_node());
  p.engram_node = any_node();
  p.head_node = any_node();
  for (const std::uint32_t owner : split_owners(p))
    if (below(2) == 0) p.gather.insert(owner);
  p.rows_per_step = std::vector<std::uint32_t>{5, 16, 64}[below(3)];
  p.bounded = below(2) == 0;
  return p;
}

placement with_drafter(placement p, std::uint64_t seed) {
  const std::uint32_t nodes = last_node_of(p) + 1;
  p.drafter_node = seed % 3 == 0 ? nodes : static_cast<std::uint32_t>(seed / 3 % nodes);
  return p;
}

placement with_experts(placement p, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint32_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
  };
  const std::uint32_t before = last_node_of(p) + 1;
  std::uint32_t nodes = before;
  for (std::uint32_t i = 1 + below(4); i > 0; --i) {
    placed_experts& slice = p.experts.emplace_back();
    slice.node = below(std::min(nodes + 1, before + 2));
    nodes = std::max(nodes, slice.node + 1);
    slice.first = below(layers());
    slice.last = slice.first + below(layers() - slice.first);
  }
  // Each has one; the others are on any, or with their stages.
  const auto slices = static_cast<std::uint32_t>(p.experts.size());
  for (std::uint32_t id = 0; id < model_of_placements().config().routed_experts; ++id) {
    const std::uint32_t holder = id < slices ? id : below(slices + 1);
    if (holder < slices) p.experts[holder].ids.insert(id);
  }
  return p;
}

placement with_indexers(placement p, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint32_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
  };
  const std::uint32_t before = last_node_of(p) + 1;
  std::uint32_t nodes = before;
  const auto& owners = model_of_placements().config().kv_sources;
  const std::uint32_t always = owners[below(static_cast<std::uint32_t>(owners.size()))];
  for (const std::uint32_t owner : owners) {
    if (owner != always && below(3) > 0) continue;
    placed_index& index = p.indexers.emplace_back();
    index.owner = owner;
    for (std::uint32_t i = 1 + below(4); i > 0; --i) {
      index.nodes.push_back(below(std::min(nodes + 1, before + 2)));
      nodes = std::max(nodes, index.nodes.back() + 1);
    }
  }
  return p;
}

placement with_shards(placement p, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const model::engram_config& engram = model_of_placements().config().engram;
  const std::uint32_t own = last_node_of(p) + 1;
  // A node that had nothing but all tables would have nothing.
  std::uint32_t next = p.engram_node;
  for (std::size_t module = 0; module < engram.layers.size(); ++module) {
    const std::uint64_t rows = engram.rows[module];
    std::set<std::uint64_t> begins{0};
    for (auto more = 1 + random() % 3; more > 0; --more) begins.insert(1 + random() % (rows - 1));
    for (auto begin = begins.begin(); begin != begins.end(); ++begin) {
      const std::uint64_t end = std::next(begin) == begins.end() ? rows : *std::next(begin);
      p.shards.push_back({next, engram.layers[module], *begin, end - 1});
      next = p.shards.size() == 1 ? own : static_cast<std::uint32_t>(random() % (own + 1));
    }
  }
  return p;
}

namespace {

std::string indexers_text(const placement& p) {
  std::string text;
  for (const placed_index& index : p.indexers)
    for (std::size_t i = 0; i < index.nodes.size(); ++i)
      text += "    - {name: index" + std::to_string(index.owner) + "-" + std::to_string(i) +
              ", owner: " + std::to_string(index.owner) + ", device: cpu" +
              std::to_string(index.nodes[i]) + "}\n";
  return text.empty() ? text : "  indexers:\n" + text;
}

std::string engram_text(const placement& p) {
  if (p.shards.empty()) return "  engram: {device: cpu" + std::to_string(p.engram_node) + "}\n";
  std::string text = "  engram:\n";
  for (std::size_t i = 0; i < p.shards.size(); ++i) {
    const placed_shard& shard = p.shards[i];
    text += "    - {name: shard" + std::to_string(i) + ", layer: " + std::to_string(shard.layer) +
            ", rows: " + std::to_string(shard.first) + "-" + std::to_string(shard.last) +
            ", device: cpu" + std::to_string(shard.node) + "}\n";
  }
  return text;
}

std::string experts_text(const placement& p) {
  if (p.experts.empty()) return {};
  std::string text = "  experts:\n";
  for (std::size_t i = 0; i < p.experts.size(); ++i) {
    const placed_experts& slice = p.experts[i];
    std::string ids;
    for (const std::uint32_t id : slice.ids) ids += (ids.empty() ? "" : ",") + std::to_string(id);
    text += "    - {name: experts" + std::to_string(i) +
            ", layers: " + std::to_string(slice.first) + "-" + std::to_string(slice.last) +
            ", experts: '" + ids + "', device: cpu" + std::to_string(slice.node) + "}\n";
  }
  return text;
}

}  // namespace

std::string topology_text(const placement& p) {
  const std::uint32_t last_node = last_node_of(p);
  std::string text = "cedar: 1\nnodes:\n";
  for (std::uint32_t n = 0; n <= last_node; ++n)
    text += "  node" + std::to_string(n) + ": {address: 127.0.0.1}\n";
  text += "client: node0\ndevices:\n";
  for (std::uint32_t n = 0; n <= last_node; ++n)
    text += "  cpu" + std::to_string(n) + ": {node: node" + std::to_string(n) + "}\n";
  text += "units:\n  scheduler: {node: node0}\n  embedding: {device: cpu0}\n" + engram_text(p) +
          "  stages:\n";
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < p.nodes.size(); ++i) {
    const std::uint32_t last = i < p.cuts.size() ? p.cuts[i] : layers() - 1;
    text += "    - {name: stage" + std::to_string(i) + ", layers: " + std::to_string(first) + "-" +
            std::to_string(last) + ", device: cpu" + std::to_string(p.nodes[i]) + "}\n";
    first = last + 1;
  }
  text += experts_text(p) + indexers_text(p) + "  head: {device: cpu" +
          std::to_string(p.head_node) + "}\n";
  if (p.drafter_node)
    text += "  drafter: {device: cpu" + std::to_string(*p.drafter_node) + "}\ndraft: fixed:5\n";
  const auto owners = split_owners(p);
  if (!owners.empty()) text += "splits:\n";
  for (const std::uint32_t owner : owners)
    text += "  - {owner: " + std::to_string(owner) +
            ", mode: " + (p.gather.contains(owner) ? "gather" : "mirror") + "}\n";
  text +=
      p.processes ? "transport: {kind: ucx, tls: [tcp, self]}\n" : "transport: {kind: loopback}\n";
  // One step at a time: then the steps are those of the local engine; with drafts if there is
  // nobody whose step could come before they do.
  return text + "limits: {rows_per_step: " + std::to_string(p.rows_per_step) +
         ", requests: " + std::to_string(p.drafter_node ? 1 : requests_max) +
         ", context: " + std::to_string(context) +
         ", prefix_positions: " + std::to_string(p.prefix_positions) + ", steps_in_flight: 1}\n";
}

std::vector<session::generation_request> placement_requests(bool bounded) {
  std::mt19937 random(40);
  std::vector<session::generation_request> requests;
  for (const std::size_t length : {37U, 9U, 21U}) {
    session::generation_request request;
    for (std::size_t i = 0; i < length; ++i)
      request.prompt.push_back(static_cast<token_id>(3 + random() % 500));
    request.new_tokens_max = 4;
    request.ignore_eos = true;
    request.prompt_logits = static_cast<std::uint32_t>(length);
    request.want_logits = true;
    if (bounded) request.mode = session::prefill_mode::bounded;
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<session::generation_request> next_turn(
    std::vector<session::generation_request> requests, const std::vector<placed_row>& rows) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::vector<token_id>& prompt = requests[i].prompt;
    const auto last = static_cast<std::uint32_t>(prompt.size()) - 1;
    for (const placed_row& row : rows)
      if (row.request == i && row.position >= last) prompt.push_back(row.token);
    for (token_id id = 0; id < 6; ++id) prompt.push_back(30 + 7 * id);
  }
  return requests;
}

namespace {

/// What the routers chose, as the tap of a layer says it.
void note_routes(const flow::tap& tap, topology::step_routes& routes) {
  if (tap.last) return;
  const auto layer = static_cast<std::uint32_t>(std::stoul(tap.name.substr(1)));
  const auto* ids = reinterpret_cast<const std::int32_t*>(flow::bytes_of(tap.payload).data());
  for (std::uint32_t row = 0; row < tap.shape[0]; ++row, ids += tap.shape[1])
    routes[layer].emplace_back(ids, ids + tap.shape[1]);
}

topology::step_addresses addresses_of(const flow::step_table& table) {
  static const auto engram = value_of(model_of_placements().make_engram());
  topology::step_addresses out;
  for (const std::uint32_t layer : model_of_placements().config().engram.layers)
    out[layer] = value_of(engram.addresses(table, layer));
  return out;
}

/// Runs requests to their end; appends steps and rows.
void run_turn(session::step_scheduler& scheduler, local::local_engine& engine,
              const std::vector<session::generation_request>& requests, expected_run& out) {
  const auto ids = value_of(scheduler.submit(requests));
  while (const auto table = scheduler.next_step()) {
    flow::step_table probed = *table;
    probed.taps = {"L*.gate.indices"};
    topology::step_routes& routes = out.routes.emplace_back();
    const auto proposal =
        value_of(engine.run(probed, [&](const flow::tap& tap) { note_routes(tap, routes); }));
    const auto outcome = value_of(scheduler.accept(proposal));
    engine.apply(outcome.verdict);
    out.tables.push_back(*table);
    out.addresses.push_back(addresses_of(*table));
    out.orders.push_back(outcome.orders);
    for (const session::row_event& event : outcome.events) {
      const auto request = std::ranges::find(ids, event.request) - ids.begin();
      out.rows.push_back({static_cast<std::size_t>(request),
                          event.position,
                          event.token,
                          event.log_probability,
                          {event.logits.begin(), event.logits.end()}});
    }
    BOOST_REQUIRE(engine.offer_drafts(scheduler, *table, outcome));
  }
}

std::unique_ptr<local::local_engine> engine_of(const session::scheduler_limits& limits) {
  static const auto backend = kernels::make_backend("cpu");
  return value_of(
      local::local_engine::open(model_of_placements(), *backend,
                                {.rows_per_step = limits.rows_per_step,
                                 .requests_max = limits.requests_max,
                                 .context_max = limits.context_max,
                                 .prefix_positions = limits.prefix_granules * limits.kv_granule,
                                 .draft_tokens = limits.draft_tokens_max}));
}

}  // namespace

const expected_run& expected_of(const session::scheduler_limits& limits, bool bounded) {
  static std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, expected_run> known;
  const auto [found, made] =
      known.try_emplace({limits.rows_per_step, limits.draft_tokens_max, bounded});
  if (!made) return found->second;
  session::step_scheduler scheduler(limits);
  run_turn(scheduler, *engine_of(limits), placement_requests(bounded), found->second);
  return found->second;
}

expected_run expected_of_turns(const session::scheduler_limits& limits,
                               const std::vector<session::generation_request>& requests) {
  expected_run out;
  session::step_scheduler scheduler(limits);
  const auto engine = engine_of(limits);
  run_turn(scheduler, *engine, requests, out);
  run_turn(scheduler, *engine, next_turn(requests, out.rows), out);
  return out;
}

}  // namespace cedar::test
