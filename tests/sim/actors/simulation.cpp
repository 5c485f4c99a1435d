#include "tests/sim/actors/simulation.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <list>

#include "actors/error_bridge.hpp"
#include "topology/launch/edge_ends.hpp"
#include "topology/launch/node_runtime.hpp"

namespace cedar::test {

namespace {

constexpr std::uint64_t fingerprint = 0x5eed;
/// More actions than any run here needs: beyond it, something runs in circles.
constexpr std::size_t actions_max = 1'000'000;

template <class T>
T value_of(result<T> made) {
  if (!made) BOOST_FAIL(made.error().message);
  return std::move(*made);
}

const std::string beginning = "cedar: 1\nmodel: {path: model}\ntransport: {kind: loopback}\n";

const std::string one_node = beginning + R"(nodes: {here: {}}
devices: {cpu: {node: here}}
units:
  scheduler: {node: here}
  embedding: {device: cpu}
  engram: {device: cpu}
  stages:
    - {name: first, layers: 0-3, device: cpu}
    - {name: second, layers: 4-5, device: cpu}
    - {name: third, layers: 6-11, device: cpu}
  head: {device: cpu}
)";

const std::string two_nodes = beginning + R"(nodes: {front: {}, back: {}}
client: front
devices: {a: {node: front}, b: {node: back}}
units:
  scheduler: {node: front}
  embedding: {device: a}
  engram: {device: a}
  stages:
    - {name: encoder, layers: 0-5, device: a}
    - {name: decoder, layers: 6-11, device: b}
  head: {device: b}
)";

// The middle node runs the tables and both encoder stages; the client only schedules.
const std::string three_nodes = beginning + R"(nodes: {front: {}, middle: {}, back: {}}
client: front
devices: {a: {node: front}, b: {node: middle}, c: {node: back}}
units:
  scheduler: {node: front}
  embedding: {device: c}
  engram: {device: b}
  stages:
    - {name: first, layers: 0-1, device: a}
    - {name: second, layers: 2-5, device: b}
    - {name: third, layers: 6-11, device: c}
  head: {device: a}
)";

// Cuts through the groups of owners 2, 4 and 6; stages of one group on different nodes and on one.
std::string split_groups(const std::string& mode) {
  return beginning + R"(nodes: {front: {}, back: {}}
client: front
devices: {a: {node: front}, b: {node: back}}
units:
  scheduler: {node: front}
  embedding: {device: a}
  engram: {device: b}
  stages:
    - {name: first, layers: 0-2, device: a}
    - {name: second, layers: 3-6, device: b}
    - {name: third, layers: 7-8, device: a}
    - {name: fourth, layers: 9-11, device: a}
  head: {device: b}
splits:
  - {owner: 2, mode: )" +
         mode + R"(}
  - {owner: 6, mode: )" +
         mode + "}\n";
}

/// On top of the splits in mode gather: experts in two processes of their own, beside a stage, and
/// with their stages.
std::string with_experts(std::string text) {
  text.insert(text.find("nodes: {") + 8, "low: {}, high: {}, ");
  text.insert(text.find("devices: {") + 10, "l: {node: low}, h: {node: high}, ");
  text.insert(text.find("  head:"),
              "  experts:\n"
              "    - {name: few, layers: 0-11, experts: 0-2, device: l}\n"
              "    - {name: many, layers: 2-7, experts: '4,6-7', device: h}\n"
              "    - {name: beside, layers: 8-11, experts: 6-7, device: b}\n");
  return text;
}

/// And the index keys of both owners that are split, in shares beside stages and experts.
std::string with_indexers(std::string text) {
  text.insert(text.find("  head:"),
              "  indexers:\n"
              "    - {name: keys1, owner: 6, device: l}\n"
              "    - {name: keys2, owner: 6, device: a}\n"
              "    - {name: pairs1, owner: 2, device: b}\n"
              "    - {name: keys3, owner: 6, device: h}\n"
              "    - {name: pairs2, owner: 2, device: a}\n");
  return text;
}

/// Of "three nodes": tables in parts on two nodes of their own, beside a stage and with the client.
std::string with_shards(std::string text) {
  text.insert(text.find("nodes: {") + 8, "low: {}, high: {}, ");
  text.insert(text.find("devices: {") + 10, "l: {node: low}, h: {node: high}, ");
  const std::string whole = "  engram: {device: b}\n";
  return text.replace(text.find(whole), whole.size(),
                      "  engram:\n"
                      "    - {name: lower, layer: 1, rows: 0-299, device: l}\n"
                      "    - {name: upper, layer: 4, rows: 150-, device: h}\n"
                      "    - {name: middle, layer: 1, rows: 300-301, device: b}\n"
                      "    - {name: rest, layer: 1, rows: 302-, device: h}\n"
                      "    - {name: near, layer: 4, rows: 0-149, device: a}\n");
}

const std::string drafted = "drafted ";

/// Of a placement; "three nodes" has a node for the drafter alone.
std::string with_drafter(std::string text, const std::string& name) {
  const std::string device = name == "two nodes" ? "a" : name == "mirror" ? "b" : "d";
  const std::string head = "  head: {device: ";
  text.insert(text.find('\n', text.find(head)) + 1, "  drafter: {device: " + device + "}\n");
  if (device != "d") return text;
  text.insert(text.find("nodes: {") + 8, "side: {}, ");
  text.insert(text.find("devices: {") + 10, "d: {node: side}, ");
  return text;
}

const std::string seeing = "seeing ";

/// Of a placement; "three nodes" and "gather" have a node for vision alone.
std::string with_vision(std::string text, const std::string& name) {
  const std::string device = name == "two nodes" ? "b" : name == "mirror" ? "a" : "v";
  text.insert(text.find("  embedding:"), "  vision: {device: " + device + "}\n");
  if (device != "v") return text;
  text.insert(text.find("nodes: {") + 8, "eye: {}, ");
  text.insert(text.find("devices: {") + 10, "v: {node: eye}, ");
  return text;
}

/// Takes `prefix` off, if it is there.
bool takes_off(std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return false;
  name.erase(0, prefix.size());
  return true;
}

/// The model whose configuration the plan was made for.
const stage::model_source& model_of(const topology::plan& plan) {
  return plan.model().vision.layers > 0 ? vision_model() : tiny_model();
}

/// Reading the tokenizer for every run would take most of its time.
const stage::engram_stage& engram_of(const stage::model_source& model,
                                     const std::vector<model::engram_shard>& shards) {
  using placed = std::pair<const stage::model_source*, std::vector<model::engram_shard>>;
  static std::list<std::pair<placed, stage::engram_stage>> made;
  const placed wanted{&model, shards};
  const auto found =
      std::ranges::find(made, wanted, &std::pair<placed, stage::engram_stage>::first);
  if (found != made.end()) return found->second;
  return made.emplace_back(wanted, value_of(model.make_engram(shards))).second;
}

}  // namespace

const std::vector<std::string>& seeing_names() {
  static const std::vector<std::string> names{"seeing two nodes", "seeing three nodes",
                                              "seeing mirror", "seeing gather",
                                              "seeing drafted three nodes"};
  return names;
}

const std::vector<std::string>& drafted_names() {
  static const std::vector<std::string> names{"drafted two nodes", "drafted three nodes",
                                              "drafted mirror",    "drafted gather",
                                              "drafted experts",   "drafted shards"};
  return names;
}

const std::vector<std::string>& topology_names() {
  static const std::vector<std::string> names{"one node", "two nodes", "three nodes", "mirror",
                                              "gather",   "experts",   "shards"};
  return names;
}

topology::plan planned(const std::string& name, const std::string& sections) {
  std::string topology_name = name;
  const bool sees = takes_off(topology_name, seeing);
  const bool drafts = takes_off(topology_name, drafted);
  const std::string plain = topology_name == "one node"      ? one_node
                            : topology_name == "two nodes"   ? two_nodes
                            : topology_name == "three nodes" ? three_nodes
                            : topology_name == "experts"
                                ? with_indexers(with_experts(split_groups("gather")))
                            : topology_name == "shards" ? with_shards(three_nodes)
                                                        : split_groups(topology_name);
  std::string topology = drafts ? with_drafter(plain, topology_name) : plain;
  if (sees) topology = with_vision(std::move(topology), topology_name);
  if (drafts && sections.find("draft: ") == std::string::npos) topology += "draft: fixed:5\n";
  const auto parsed = topology::parse_document(topology + sections, topology_name);
  BOOST_REQUIRE_MESSAGE(parsed, (parsed ? "" : to_string(parsed.error())));
  auto made = topology::make_plan(*parsed, (sees ? vision_model() : tiny_model()).config());
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : to_string(made.error())));
  return std::move(*made);
}

struct simulation::node {
  bool dead = false;
  std::unique_ptr<actors::switchboard> switchboard;
  std::unique_ptr<transport::port> inner;
  std::unique_ptr<transport::faulty_port> port;
  std::map<node_id, actors::link_actor> links;
};

simulation::configuration::configuration() {
  set("scheduler.policy", caf::atom("testing"));
}

simulation::simulation(const topology::plan& plan, const sim_settings& settings)
    : plan_(plan),
      model_(model_of(plan)),
      settings_(settings),
      random_(settings.seed),
      system_(config_),
      jobs_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())) {
  jobs_.run();
  supervisor_ =
      system_.spawn([this](actors::fault_sink::pointer) -> actors::fault_sink::behavior_type {
        return {[this](const actors::fault_ref& what) { report(*what); }};
      });
  all_.push_back(caf::actor_cast<caf::actor>(supervisor_));
  open_nodes();
  connect_nodes();
  while (hub_.deliver(1) > 0) continue;
  spawn_scheduler();
  spawn_units();
  bind_all();
}

simulation::~simulation() {
  for (const caf::actor& actor : all_) caf::anon_send_exit(actor, caf::exit_reason::kill);
  jobs_.run();
}

void simulation::open_nodes() {
  for (const topology::node_plan& plan : plan_.nodes()) {
    auto made = std::make_unique<node>();
    made->switchboard = std::make_unique<actors::switchboard>(actors::switchboard::listener{
        [this, self = plan.id](node_id peer) { up_.emplace(self, peer); },
        [this, self = plan.id](node_id peer, const error& reason) {
          // Else it is known, and done with.
          if (up_.erase({self, peer}) > 0 && !nodes_.at(self)->dead)
            report({plan_[peer].name, reason, epoch_});
        },
        [this](node_id from, const error& what) {
          report({plan_[from].name, what, epoch_});
        }});
    made->inner = hub_.open(plan.id, plan.name, *made->switchboard);
    transport::fault_plan misbehaviour = settings_.faults;
    misbehaviour.seed = settings_.seed * 31 + plan.id.value;
    made->port = std::make_unique<transport::faulty_port>(*made->inner, misbehaviour,
                                                          [this] { return jobs_.clock().now(); });
    nodes_[plan.id] = std::move(made);
  }
  for (auto& [id, self] : nodes_)
    for (auto& [peer, other] : nodes_) {
      if (peer == id) continue;
      self->links[peer] = actors::spawn_link(system_, *self->port, peer);
      all_.push_back(caf::actor_cast<caf::actor>(self->links[peer]));
    }
}

void simulation::connect_nodes() {
  for (auto& [id, self] : nodes_)
    for (const transport::peer_statistics& peer : self->port->statistics().peers)
      if (!peer.up) up_.erase({id, peer.peer});
  for (auto& [id, self] : nodes_)
    for (auto& [peer, other] : nodes_)
      if (id < peer) self->port->connect(peer, other->port->address(), {});
}

session::scheduler_limits simulation::limits() const {
  session::scheduler_limits limits = topology::scheduler_limits_of(plan_, model_.config());
  limits.queue_max = 100;
  if (settings_.drafter != nullptr) limits.draft_tokens_max = model_.config().dspark.block_size;
  return limits;
}

void simulation::spawn_scheduler() {
  actors::scheduler_listener listener{
      [this](const flow::proposal&, const std::vector<session::row_event>& events) {
        for (const session::row_event& event : events) rows[event.request].emplace_back(event);
      },
      [this](request_id request, const session::usage& used) {
        finished[request] = used;
        taps_before_finish[request] = taps.size();
      },
      [this](flow::tap tap) { taps.push_back(std::move(tap)); },
      {},  // nobody looks at the load
      [this](const std::vector<request_id>& requests, const actors::fault& why) {
        failed_ = true;
        given_up.insert(given_up.end(), requests.begin(), requests.end());
        given_up_for.push_back(why);
      },
      [this](const session::measured_costs& costs) { measured.push_back(costs); }};
  scheduler_ = actors::spawn_scheduler(
      system_, {limits(), plan_.deadlines().step, std::move(listener), &no_trace_,
                settings_.drafter, plan_.limits().draft_policy});
  all_.push_back(caf::actor_cast<caf::actor>(scheduler_));
}

void simulation::spawn_units() {
  for (const topology::unit_plan& unit : plan_.units()) {
    if (std::holds_alternative<topology::scheduler_role>(unit.role) || units_.contains(unit.id))
      continue;
    units_[unit.id] = spawn_unit(unit);
    all_.push_back(caf::actor_cast<caf::actor>(units_[unit.id]));
  }
}

actors::unit_actor simulation::spawn_unit(const topology::unit_plan& unit) {
  const std::size_t steps = plan_.limits().steps_in_flight;
  std::unique_ptr<stage::unit> made;
  if (std::holds_alternative<topology::embedding_role>(unit.role)) {
    stage::embedding_stage embedding = value_of(model_.make_embedding());
    made = plan_.reads_images() ? stage::make_image_embedding_unit(std::move(embedding), steps)
                                : stage::make_embedding_unit(std::move(embedding));
  } else if (std::holds_alternative<topology::vision_role>(unit.role)) {
    auto vision = value_of(model_.make_vision(cpu_backend()));
    vision_ = vision.get();
    made = stage::make_vision_unit(std::move(vision), steps);
  } else if (const auto* engram = std::get_if<topology::engram_role>(&unit.role)) {
    made = stage::make_engram_unit(engram_of(model_, engram->shards));
  } else if (const auto* experts = std::get_if<topology::experts_role>(&unit.role)) {
    made = stage::make_expert_unit(value_of(model_.make_experts(cpu_backend(), experts->slice)));
  } else if (const auto* indexer = std::get_if<topology::indexer_role>(&unit.role)) {
    auto stage = model_.make_indexer(
        cpu_backend(), {indexer->shard, plan_.limits().requests, plan_.limits().context,
                        plan_.limits().kv_granules, plan_.limits().prefix_granules});
    indexers_[unit.id] = stage.get();
    made = stage::make_indexer_unit(std::move(stage), steps);
  } else if (std::holds_alternative<topology::head_role>(unit.role)) {
    made = stage::make_head_unit(value_of(model_.make_head(cpu_backend())), steps);
  } else if (std::holds_alternative<topology::drafter_role>(unit.role)) {
    auto drafter = value_of(model_.make_drafter(cpu_backend(), plan_.limits().requests));
    drafter_ = drafter.get();
    made = stage::make_drafter_unit(
        std::make_unique<stage::drafting>(std::move(drafter), model_.config()), steps);
  } else {
    const auto& role = std::get<topology::stage_role>(unit.role);
    auto stage = value_of(model_.make_layers(
        cpu_backend(),
        {role.layers.first, role.layers.last, plan_.limits().requests, plan_.limits().context,
         role.imports, role.exports, plan_.limits().kv_granules, plan_.limits().prefix_granules,
         role.tapped_layers, role.experts_elsewhere, role.indexers, role.engram_shards}));
    stages_[unit.id] = stage.get();
    made = stage::make_layer_unit(std::move(stage), steps);
  }
  // Not detached: the test scheduler runs it.
  return actors::spawn_unit(system_, {unit.name, std::move(made), false, supervisor_, &no_trace_});
}

actors::packet_sink simulation::sink_of(node_id self, topology::unit_id unit, node_id at) {
  if (at != self) return nodes_.at(self)->links.at(at);
  if (const auto found = units_.find(unit); found != units_.end()) return found->second;
  return scheduler_;
}

void simulation::bind(const topology::unit_plan& unit) {
  const auto found = units_.find(unit.id);
  const actors::unit_actor actor =
      found != units_.end() ? found->second : actors::unit_actor(scheduler_);
  const topology::sink_finder sinks = [&](topology::unit_id other, node_id at) {
    return sink_of(unit.node, other, at);
  };
  auto ends = topology::edge_ends(plan_, unit.id, fingerprint, sinks);
  std::map<actors::packet_sink, actors::packet_sink> gates;  // of this unit, by peer
  for (actors::edge_end& end : ends) {
    if (settings_.small_windows && plan_[end.contract.edge].kind != topology::edge_kind::tap) {
      end.contract.window_messages = 1;
      end.contract.window_bytes = plan_[end.contract.edge].message_bytes_max;
    }
    edge_watch& watch = watches_[end.contract.edge];
    watch.kind = plan_[end.contract.edge].kind;
    watch.contract = end.contract;
    watch.epoch = epoch_;
    watch.messages_out = watch.bytes_out = 0;
    actors::packet_sink& gate = gates[end.peer];
    if (!gate) gate = spawn_gate(end.peer);
    end.peer = gate;
  }
  const auto shared = std::make_shared<const std::vector<actors::edge_end>>(std::move(ends));
  system_.spawn([this, actor, shared, epoch = epoch_](caf::event_based_actor* self) {
    self->request(actor, caf::infinite, actors::bind_atom::value, actors::edge_ends_ref(shared),
                  epoch.value)
        .then([this, epoch](actors::bound_atom) { bound_ += epoch == epoch_ ? 1 : 0; });
  });
}

void simulation::bind_all() {
  bound_ = 0;
  for (const topology::unit_plan& unit : plan_.units()) bind(unit);
  for (auto& [id, one] : nodes_)
    one->switchboard->connect(topology::crossing_edges(
        plan_, id, [this, self_id = id](topology::unit_id unit, node_id at) {
          return sink_of(self_id, unit, at);
        }));
  while (bound_ < plan_.units().size()) BOOST_REQUIRE(act());
}

void simulation::kill(const std::string& name) {
  const node_id id = plan_.find_node(name)->id;
  node& one = *nodes_.at(id);
  one.dead = true;
  for (const topology::unit_id unit : plan_[id].units) {
    caf::anon_send_exit(units_.at(unit), caf::exit_reason::kill);
    units_.erase(unit);
    stages_.erase(unit);
    indexers_.erase(unit);
    if (std::holds_alternative<topology::drafter_role>(plan_[unit].role)) drafter_ = nullptr;
    if (std::holds_alternative<topology::vision_role>(plan_[unit].role)) vision_ = nullptr;
  }
  for (const auto& [peer, other] : nodes_)
    if (peer != id) one.inner->disconnect(peer, {errc::peer_lost, "killed"});
}

void simulation::calm() {
  for (auto& [id, one] : nodes_) one->port->calm();
}

void simulation::measure() {
  caf::anon_send(scheduler_, actors::measure_atom::value);
}

void simulation::recover() {
  do {
    connect_nodes();
    ++epoch_.value;
    troubled_ = false;
    for (auto& [id, one] : nodes_) one->dead = false;
    spawn_units();
    bind_all();
  } while (troubled_);
  failed_ = false;
  caf::anon_send(scheduler_, actors::resume_atom::value);
}

/// Stands between a unit and one of its peers and sees what leaves for it. One gate for all edges
/// to that peer: what one actor sends another arrives in order, whatever the edge.
actors::packet_sink simulation::spawn_gate(const actors::packet_sink& peer) {
  auto gate = system_.spawn(
      [this, peer](actors::packet_sink::pointer self) -> actors::packet_sink::behavior_type {
        return {[this, self, peer](const actors::packet_ref& packet) {
          if (note(watches_.at(packet->head.edge), *packet)) self->send(peer, packet);
        }};
      });
  all_.push_back(caf::actor_cast<caf::actor>(gate));
  return gate;
}

/// False: the packet is lost here.
bool simulation::note(edge_watch& watch, const flow::stamped_message& packet) {
  if (flow::epoch_of(packet.body) < watch.epoch) return true;
  if (const auto* credit = std::get_if<flow::credit>(&packet.body)) {
    watch.messages_out -= credit->messages;
    watch.bytes_out -= static_cast<std::int64_t>(credit->bytes);
    if (watch.messages_out < 0 || watch.bytes_out < 0)
      violations.push_back(watch.contract.name + ": more credit than messages");
    return true;
  }
  ++watch.messages_out;
  watch.messages_out_max = std::max(watch.messages_out_max, watch.messages_out);
  watch.bytes_out += static_cast<std::int64_t>(flow::credit_bytes(packet.body));
  if (watch.messages_out > watch.contract.window_messages ||
      watch.bytes_out > static_cast<std::int64_t>(watch.contract.window_bytes))
    violations.push_back(watch.contract.name + ": more on its way than the window");
  if (const auto* verdict = std::get_if<flow::verdict>(&packet.body))
    watch.verdicts.push_back(*verdict);
  const std::uint64_t index = watch.messages++;
  return !(settings_.lost && settings_.lost->first == watch.kind &&
           settings_.lost->second == index);
}

void simulation::report(const actors::fault& what) {
  if (what.epoch < epoch_) return;
  troubled_ = true;
  faults.push_back(what);
  caf::anon_send(scheduler_, actors::fail_atom::value,
                 actors::fault_ref(std::make_shared<const actors::fault>(what)));
}

result<std::vector<request_id>> simulation::submit(
    const std::vector<session::generation_request>& requests) {
  const caf::scoped_actor self{system_};
  auto asked =
      self->request(scheduler_, caf::infinite, actors::submit_atom::value,
                    std::make_shared<const std::vector<session::generation_request>>(requests));
  while (jobs_.prioritize(scheduler_)) jobs_.run_once();
  result<std::vector<request_id>> ids;
  asked.receive([&](const actors::request_ids_ref& given) { ids = *given; },
                [&](const caf::error& what) { ids = fail(actors::from_caf(system_, what)); });
  return ids;
}

void simulation::cancel(request_id request) {
  caf::anon_send(scheduler_, actors::cancel_atom::value, request.value);
}

bool simulation::run_a_job() {
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < jobs_.jobs.size(); ++i)
    if (!stalled_.contains(jobs_.jobs[i])) ready.push_back(i);
  if (ready.empty()) return false;
  const auto chosen =
      jobs_.jobs.begin() + static_cast<std::ptrdiff_t>(ready[random_() % ready.size()]);
  std::rotate(jobs_.jobs.begin(), chosen, chosen + 1);
  jobs_.run_once();
  return true;
}

bool simulation::act() {
  if (random_() % 16 == 0) {
    jobs_.advance_time(std::chrono::microseconds(random_() % 200));
    for (auto& [id, one] : nodes_) one->port->release();
  }
  const bool network_first = random_() % 2 == 0;
  if (network_first && hub_.deliver(1) > 0) return true;
  if (run_a_job()) return true;
  if (hub_.deliver(1) > 0) return true;
  // Frames that are held back to be overtaken, or to be late, come at last.
  for (auto& [id, one] : nodes_) one->port->release(true);
  return hub_.deliver(1) > 0;
}

void simulation::run() {
  for (std::size_t actions = 0; act(); ++actions) BOOST_REQUIRE_LT(actions, actions_max);
}

void simulation::advance(std::chrono::milliseconds time) {
  jobs_.advance_time(time);
}

void simulation::stall(const std::string& unit) {
  for (const auto& [id, actor] : units_)
    if (plan_[id].name == unit) stalled_.insert(job_of(actor));
}

void simulation::resume(const std::string& unit) {
  for (const auto& [id, actor] : units_)
    if (plan_[id].name == unit) stalled_.erase(job_of(actor));
}

std::size_t simulation::pages_in_use() const {
  std::size_t pages = 0;
  for (const auto& [unit, stage] : stages_) pages += stage->pages().pages_in_use();
  for (const auto& [unit, stage] : indexers_) pages += stage->pages().pages_in_use();
  return pages;
}

std::size_t simulation::sequences() const {
  std::size_t count = drafter_ == nullptr ? 0 : drafter_->sequences();
  for (const auto& [unit, stage] : stages_) count += stage->sequences();
  for (const auto& [unit, stage] : indexers_) count += stage->sequences();
  return count;
}

std::size_t simulation::image_rows() const {
  return vision_ == nullptr ? 0 : vision_->rows_held();
}

transport::fault_counts simulation::fault_counts() const {
  transport::fault_counts sum;
  for (const auto& [id, one] : nodes_) {
    const transport::fault_counts counts = one->port->counts();
    sum.sent += counts.sent;
    sum.dropped += counts.dropped;
    sum.duplicated += counts.duplicated;
    sum.reordered += counts.reordered;
    sum.corrupted += counts.corrupted;
    sum.delayed += counts.delayed;
    sum.disconnected += counts.disconnected;
  }
  return sum;
}

bool simulation::credit_is_whole() const {
  return std::ranges::all_of(watches_, [](const auto& entry) {
    return entry.second.messages_out == 0 && entry.second.bytes_out == 0;
  });
}

}  // namespace cedar::test
