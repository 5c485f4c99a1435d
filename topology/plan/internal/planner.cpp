#include "topology/plan/internal/planner.hpp"

#include <algorithm>
#include <set>

#include "kernels/base/check.hpp"
#include "topology/plan/internal/address.hpp"
#include "topology/plan/internal/credit_proof.hpp"
#include "topology/plan/internal/draft_checks.hpp"
#include "topology/plan/internal/engram_checks.hpp"
#include "topology/plan/internal/expert_checks.hpp"
#include "topology/plan/internal/indexer_checks.hpp"
#include "topology/plan/internal/name_checks.hpp"
#include "topology/plan/internal/split_checks.hpp"

namespace cedar::topology::internal {

namespace {

// Taps are diagnostics: enough messages to keep the edge busy, memory for two of the largest.
constexpr std::uint32_t tap_window_messages = 16;
constexpr std::uint64_t tap_window_largest = 2;

std::vector<std::uint32_t> within(const std::vector<std::uint32_t>& layers, layer_range range) {
  std::vector<std::uint32_t> out;
  std::copy_if(layers.begin(), layers.end(), std::back_inserter(out),
               [&](std::uint32_t layer) { return layer >= range.first && layer <= range.last; });
  return out;
}

edge_role role_of(const plan& planned, const edge_plan& edge) {
  if (is_request(edge.kind)) return edge_role::request;
  if (is_reply(edge.kind)) return edge_role::reply;
  if (edge.kind == edge_kind::image) return edge_role::aside;
  return planned.shard_of(edge) != nullptr ? edge_role::feed : edge_role::stream;
}

bool of_a_layer(edge_kind kind) {
  return kind == edge_kind::engram_rows || kind == edge_kind::shared_kv ||
         kind == edge_kind::index_keys || kind == edge_kind::selection ||
         kind == edge_kind::candidates || kind == edge_kind::draft_taps;
}

std::vector<std::string> words_or(const std::vector<located<std::string>>& words,
                                  std::vector<std::string> otherwise) {
  if (words.empty()) return otherwise;
  std::vector<std::string> out;
  for (const auto& word : words) out.push_back(word.value);
  return out;
}

constexpr double bytes_per_second_of_mbps = 1e6 / 8;

std::chrono::nanoseconds ns(const located<double>& milliseconds) {
  return std::chrono::round<std::chrono::nanoseconds>(
      std::chrono::duration<double, std::milli>(milliseconds.value));
}

std::chrono::milliseconds ms(const located<std::uint32_t>& value) {
  return std::chrono::milliseconds(value.value);
}

}  // namespace

tl::expected<plan, std::string> planner::make() {
  plan_.file_ = document_.file;
  place_bounds();
  place_nodes_and_devices();
  place_links();
  place_units();
  connect_units();
  std::vector<proof_edge> edges;
  for (const edge_plan& edge : plan_.edges_) {
    if (edge.kind == edge_kind::tap) continue;  // several a step; the scheduler always takes them
    edges.push_back({edge.producer.value, edge.consumer.value, edge.name, edge.message_bytes_max,
                     edge.window_messages, edge.window_bytes, role_of(plan_, edge),
                     edge.follows_routes() || edge.of_queries() ? 1 : edge.messages_per_step()});
  }
  const auto proof = prove_no_deadlock(static_cast<std::uint32_t>(plan_.units_.size()),
                                       scheduler_.value, plan_.limits_.steps_in_flight, edges);
  if (!proof) return tl::unexpected(proof.error());
  return plan_;
}

void planner::place_bounds() {
  const limits_entry& limits = document_.limits;
  limits_plan& bounds = plan_.limits_;
  bounds.rows_per_step = limits.rows_per_step.value;
  // More would only wait; if they were asked for, that was a mistake.
  bounds.requests = std::min(limits.requests.value, limits.rows_per_step.value);
  bounds.context = std::min(limits.context.value, config_.max_positions);
  bounds.steps_in_flight = limits.steps_in_flight.value;
  bounds.prefill_rows = limits.prefill_rows.value;
  bounds.kv_granule = kv_granule(config_);
  const std::uint64_t granules_of_context =
      (std::uint64_t{bounds.context} + bounds.kv_granule - 1) / bounds.kv_granule;
  bounds.prefix_granules = limits.prefix_positions.value / bounds.kv_granule;
  bounds.kv_granules = limits.kv_positions.given
                           ? limits.kv_positions.value / bounds.kv_granule
                           : bounds.requests * granules_of_context + bounds.prefix_granules;
  bounds.prefix_granules = std::min(bounds.prefix_granules, bounds.kv_granules);
  const session::draft_setting draft = draft_of(document_, config_);
  bounds.draft_tokens = draft.tokens;
  bounds.draft_policy = draft.automatic;
  const auto mode = session::prefill_mode_of(document_.mode.value);
  CEDAR_ASSERT(mode.has_value(), "the mode was checked");
  plan_.mode_ = *mode;
  const auto kind = transport_kind_of(document_.transport.kind.value);
  CEDAR_ASSERT(kind.has_value(), "the transport kind was checked");
  plan_.transport_.kind = *kind;
  if (*kind == transport_kind::ucx) {
    plan_.transport_.tls = words_or(document_.transport.tls, {"tcp", "self"});
    plan_.transport_.devices = words_or(document_.transport.devices, {"lo"});
  }
  const deadlines_entry& deadlines = document_.deadlines;
  plan_.deadlines_ = {ms(deadlines.start), ms(deadlines.step), ms(deadlines.heartbeat_interval),
                      ms(deadlines.heartbeat_lost), ms(deadlines.drain)};
  const security_entry& security = document_.security;
  plan_.security_.allow_remote = security.allow_remote.value;
  if (security.secret_file.given) {
    plan_.security_.secret_file = document_.resolve(security.secret_file.value);
  }
}

void planner::place_nodes_and_devices() {
  for (const node_entry& entry : document_.nodes) {
    const auto& path = entry.model_path.given ? entry.model_path : document_.model_path;
    plan_.nodes_.push_back({node_id{static_cast<std::uint32_t>(plan_.nodes_.size())},
                            entry.name.value,
                            entry.address.value,
                            document_.resolve(path.value),
                            {},
                            entry.start.value == "join" ? node_start::join : node_start::spawn});
  }
  const auto client = index_of_node(document_, document_.client.value);
  CEDAR_ASSERT(client.has_value(), "the client was checked");
  plan_.client_ = node_id{*client};
  plan_.control_ = {plan_.client().address, 0};
  if (document_.control.listen.given) {
    const auto listen = split_endpoint(document_.control.listen.value);
    CEDAR_ASSERT(listen.has_value(), "where control listens was checked");
    plan_.control_ = {listen->host, listen->port};
  }
  for (const device_entry& entry : document_.devices) {
    const auto node = index_of_node(document_, entry.node.value);
    const auto kind = device_kind_of(entry.kind.value);
    CEDAR_ASSERT(node && kind, "devices were checked");
    device_plan device{device_id{static_cast<std::uint32_t>(plan_.devices_.size())},
                       entry.name.value,
                       node_id{*node},
                       *kind,
                       entry.threads.value,
                       entry.cores.value};
    if (entry.numa.given) device.numa = entry.numa.value;
    device.nice = entry.nice.value;
    if (entry.memory.given) device.memory = entry.memory.value;
    device.index = entry.index.value;
    plan_.devices_.push_back(std::move(device));
  }
}

void planner::place_links() {
  plan_.strict_links_ = document_.strict_links.value;
  for (const link_entry& entry : document_.links) {
    const auto from = index_of_node(document_, entry.from.value);
    const auto to = index_of_node(document_, entry.to.value);
    CEDAR_ASSERT(from && to, "links were checked");
    const link_shape shape{ns(entry.latency_ms), ns(entry.jitter_ms),
                           entry.bandwidth_mbps.value * bytes_per_second_of_mbps, entry.loss.value};
    plan_.links_.push_back({node_id{*from}, node_id{*to}, shape});
    if (entry.both_ways) plan_.links_.push_back({node_id{*to}, node_id{*from}, shape});
  }
}

unit_id planner::add_unit(std::string name, node_id node, std::optional<device_id> device,
                          unit_role role) {
  const unit_id id{static_cast<std::uint32_t>(plan_.units_.size())};
  plan_.units_.push_back({id, std::move(name), node, device, std::move(role)});
  plan_.nodes_[node.value].units.push_back(id);
  return id;
}

unit_id planner::add_unit(std::string name, const std::string& device, unit_role role) {
  const auto index = index_of_device(document_, device);
  CEDAR_ASSERT(index.has_value(), "devices of units were checked");
  const device_plan& planned = plan_.devices_[*index];
  return add_unit(std::move(name), planned.node, planned.id, std::move(role));
}

void planner::place_units() {
  const units_entry& units = document_.units;
  scheduler_ = add_unit("scheduler", plan_.client_, std::nullopt, scheduler_role{});
  if (units.vision) vision_ = add_unit("vision", units.vision->device.value, vision_role{});
  embedding_ = add_unit("embedding", units.embedding.device.value, embedding_role{});
  place_engram();
  place_experts();
  place_indexers();
  place_stages();
  head_ = add_unit("head", units.head.device.value, head_role{});
  if (plan_.limits_.draft_tokens > 0)
    drafter_ = add_unit("drafter", units.drafter->device.value,
                        drafter_role{config_.dspark.target_layers});
}

void planner::place_engram() {
  const units_entry& units = document_.units;
  if (units.engram)
    engram_.push_back(add_unit("engram", units.engram->device.value,
                               engram_role{model::whole_tables(config_.engram)}));
  for (const engram_entry& entry : units.engram_shards.value) {
    const auto shard = shard_of(entry, config_, static_cast<std::uint32_t>(engram_.size()));
    engram_.push_back(add_unit(entry.name.value, entry.device.value, engram_role{{shard}, true}));
  }
}

void planner::place_experts() {
  for (const experts_entry& entry : document_.units.experts) {
    const model::expert_slice slice{static_cast<std::uint32_t>(experts_.size()),
                                    entry.layers.value.first, entry.layers.value.last,
                                    experts_of(entry, config_)};
    experts_.push_back(add_unit(entry.name.value, entry.device.value, experts_role{slice}));
  }
}

void planner::place_indexers() {
  for (const model::index_shard& shard : shards_of(document_, config_)) {
    const indexer_entry& entry = document_.units.indexers[shard.number];
    indexers_.push_back(add_unit(entry.name.value, entry.device.value, indexer_role{shard}));
  }
}

std::vector<model::engram_shard> planner::shards_within(layer_range layers) const {
  const auto whole = model::whole_tables(config_.engram);
  std::vector<model::engram_shard> out;
  for (const unit_id id : engram_)
    for (const model::engram_shard& shard : std::get<engram_role>(plan_[id].role).shards) {
      const auto table = std::ranges::find(whole, shard.layer, &model::engram_shard::layer);
      const bool within = shard.layer >= layers.first && shard.layer <= layers.last;
      if (within && shard.rows_count() < table->rows_count()) out.push_back(shard);
    }
  return out;
}

void planner::place_stages() {
  const std::set<std::uint32_t> gather = gather_owners(document_);
  const std::vector<model::index_shard> shards = shards_of(document_, config_);
  std::set<std::uint32_t> sharded;
  for (const model::index_shard& shard : shards) sharded.insert(shard.owner);
  std::vector<stage_role> roles;
  for (const stage_entry& stage : document_.units.stages) {
    const layer_range layers = stage.layers.value;
    stage_role role;
    role.layers = layers;
    role.engram_layers = within(config_.engram.layers, layers);
    if (plan_.limits_.draft_tokens > 0)
      role.tapped_layers = within(config_.dspark.target_layers, layers);
    role.first = layers.first == 0;
    role.last = layers.last + 1 == config_.layers;
    role.imports =
        model::shared_needs(schedule_, config_, layers.first, layers.last, gather, sharded);
    std::ranges::copy_if(
        shards, std::back_inserter(role.indexers), [&](const model::index_shard& shard) {
          for (std::uint32_t l = layers.first; l <= layers.last; ++l)
            if (schedule_[l].owner == shard.owner && schedule_[l].index_source == l) return true;
          return false;
        });
    for (const unit_id id : experts_) {
      const model::expert_slice& slice = std::get<experts_role>(plan_[id].role).slice;
      if (slice.first_layer <= layers.last && slice.last_layer >= layers.first)
        role.experts_elsewhere.push_back(slice);
    }
    role.engram_shards = shards_within(layers);
    for (stage_role& earlier : roles)
      earlier.exports = model::merged(
          earlier.exports, model::made_by(role.imports, earlier.layers.first, earlier.layers.last));
    roles.push_back(std::move(role));
  }
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const stage_entry& stage = document_.units.stages[i];
    stages_.push_back(add_unit(stage.name.value, stage.device.value, std::move(roles[i])));
  }
}

unit_id planner::stage_of(std::uint32_t layer) const {
  const auto found = std::ranges::find_if(stages_, [&](unit_id stage) {
    const layer_range layers = std::get<stage_role>(plan_[stage].role).layers;
    return layer >= layers.first && layer <= layers.last;
  });
  CEDAR_ASSERT(found != stages_.end(), "every layer is on a stage");
  return *found;
}

edge_plan planner::new_edge(edge_kind kind, unit_id producer, unit_id consumer) const {
  edge_plan edge;
  edge.id = edge_id{static_cast<std::uint32_t>(plan_.edges_.size())};
  edge.kind = kind;
  edge.producer = producer;
  edge.consumer = consumer;
  edge.from = plan_[producer].node;
  edge.to = plan_[consumer].node;
  edge.name =
      plan_[producer].name + " -> " + plan_[consumer].name + " " + std::string(to_string(kind));
  return edge;
}

/// What requests that begin with prefixes add to a message.
std::uint64_t planner::replay_room() const {
  return plan_.limits_.prefix_granules > 0
             ? replay_bytes_max(plan_.limits_.largest_step(config_).requests)
             : 0;
}

void planner::connect(edge_kind kind, unit_id producer, unit_id consumer, const message_size& size,
                      std::uint64_t extra_bytes, std::uint32_t layer) {
  const std::uint32_t steps = plan_.limits_.steps_in_flight;
  step_shape largest = plan_.limits_.largest_step(config_);
  if (size.per_entry != 0)
    largest.entries = entries_max(largest.rows, largest.requests, schedule_[layer].ratio);
  edge_plan edge = new_edge(kind, producer, consumer);
  edge.layer = layer;
  if (of_a_layer(kind)) edge.name += " of layer " + std::to_string(layer);
  edge.size = size;
  edge.step_bytes_max = size.bytes(largest);
  edge.message_bytes_max = edge.step_bytes_max + extra_bytes + replay_room();
  edge.window_messages = steps;
  edge.window_bytes = steps * edge.message_bytes_max;
  // The drafter may be behind the steps by a window, beside those in flight (credit_proof.hpp), and
  // so may vision and indexers.
  const bool lags =
      drafter_ == consumer || vision_ == consumer || std::ranges::count(indexers_, consumer) > 0;
  edge.queue_messages_max = lags ? 2 * steps : steps;
  plan_.edges_.push_back(std::move(edge));
}

void planner::connect_shared_state(unit_id reader) {
  const model::shared_state imports = std::get<stage_role>(plan_[reader].role).imports;
  for (const std::uint32_t owner : imports.entries)
    connect(edge_kind::shared_kv, stage_of(owner), reader, shared_kv_size(config_), 0, owner);
  for (const std::uint32_t owner : imports.index_keys)
    connect(edge_kind::index_keys, stage_of(owner), reader, index_keys_size(config_), 0, owner);
  for (const std::uint32_t source : imports.selections)
    connect(edge_kind::selection, stage_of(source), reader,
            selection_size(config_, in_decoder(source)), 0, source);
  for (const std::uint32_t source : imports.candidates)
    connect(edge_kind::candidates, stage_of(source), reader,
            candidates_size(config_, in_decoder(source)), 0, source);
  for (const std::uint32_t owner : imports.gathered) connect_gather(reader, owner);
}

void planner::connect_gather(unit_id reader, std::uint32_t owner) {
  const layer_range layers = std::get<stage_role>(plan_[reader].role).layers;
  std::set<std::uint32_t> sources;
  for (std::uint32_t layer = layers.first; layer <= layers.last; ++layer)
    if (schedule_[layer].owner == owner) sources.insert(*schedule_[layer].index_source);

  step_shape largest = plan_.limits_.largest_step(config_);
  largest.selected =
      largest.rows * std::min(config_.index_topk, plan_.limits_.context / schedule_[owner].ratio);
  const auto add = [&](edge_kind kind, unit_id producer, unit_id consumer,
                       const message_size& size) {
    edge_plan edge = new_edge(kind, producer, consumer);
    edge.layer = owner;
    edge.reader = layers.first;
    edge.name += " of layer " + std::to_string(owner);
    edge.groups.assign(sources.begin(), sources.end());
    edge.size = size;
    edge.message_bytes_max = size.bytes(largest) + replay_room();
    edge.window_messages = edge.messages_per_step();
    edge.step_bytes_max = edge.window_messages * edge.message_bytes_max;
    edge.window_bytes = edge.window_messages * edge.message_bytes_max;
    edge.queue_messages_max = edge.window_messages;
    plan_.edges_.push_back(std::move(edge));
  };
  add(edge_kind::gather_request, reader, stage_of(owner),
      selection_size(config_, in_decoder(*sources.begin())));
  add(edge_kind::gathered, stage_of(owner), reader, gathered_size(config_));
}

void planner::connect_taps(unit_id producer) {
  const limits_plan& limits = plan_.limits_;
  edge_plan edge = new_edge(edge_kind::tap, producer, scheduler_);
  edge.message_bytes_max = tap_bytes_max(config_, limits.rows_per_step, limits.context);
  edge.window_messages = tap_window_messages;
  edge.window_bytes = tap_window_largest * edge.message_bytes_max;
  edge.queue_messages_max = limits.steps_in_flight * (taps_per_step_max + 1);  // and their end
  plan_.edges_.push_back(std::move(edge));
}

void planner::connect_units() {
  const message_size table = step_table_size();
  const std::uint64_t requests = plan_.limits_.largest_step(config_).requests;
  const std::uint64_t table_extra =
      tap_names_bytes_max() + sampling_bytes_max(requests) +
      (plan_.limits_.prefix_granules > 0 ? prefix_bytes_max(requests) : 0);
  for (const unit_plan& unit : plan_.units_) {
    // Slices of experts know no steps.
    if (unit.id == scheduler_ || std::holds_alternative<experts_role>(unit.role)) continue;
    connect(edge_kind::step_table, scheduler_, unit.id, table, table_extra);
  }
  connect_vision();
  connect(edge_kind::embedded, embedding_, stages_.front(), embedded_size(config_));
  for (const unit_id stage : stages_) connect_engram(stage);
  for (std::size_t i = 1; i < stages_.size(); ++i) {
    // The first decoder layer takes all rows: it makes the entries of those that end there.
    const bool inside =
        std::get<stage_role>(plan_[stages_[i]].role).layers.first > schedule_.decoder_begin();
    connect(edge_kind::activation, stages_[i - 1], stages_[i], activation_size(config_, inside));
  }
  for (const unit_id stage : stages_) connect_shared_state(stage);
  for (const unit_id stage : stages_) connect_experts(stage);
  for (const unit_id stage : stages_) connect_index_keys(stage);
  for (const unit_id stage : stages_) connect_queries(stage);
  connect(edge_kind::head_input, stages_.back(), head_, head_input_size(config_));
  const message_size tokens = proposal_size(config_, false);
  const step_shape largest = plan_.limits_.largest_step(config_);
  const std::uint64_t logits = proposal_size(config_, true).bytes(largest) - tokens.bytes(largest);
  connect(edge_kind::proposal, head_, scheduler_, tokens, logits);
  for (const unit_id stage : stages_) {
    connect(edge_kind::verdict, scheduler_, stage, verdict_size());
  }
  for (const unit_id indexer : indexers_) {
    connect(edge_kind::verdict, scheduler_, indexer, verdict_size());
  }
  connect(edge_kind::verdict, scheduler_, head_, verdict_size());
  for (const unit_id stage : stages_) connect_taps(stage);
  connect_taps(head_);
  connect_drafter();
}

}  // namespace cedar::topology::internal
