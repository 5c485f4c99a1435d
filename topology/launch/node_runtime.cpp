#include "topology/launch/node_runtime.hpp"

#include <algorithm>

#include "runtime/model/image_tokens.hpp"
#include "runtime/model/owner_ratios.hpp"
#include "runtime/vision/tower.hpp"
#include "topology/launch/device_backend.hpp"
#include "topology/launch/host.hpp"
#include "topology/launch/node_port.hpp"

namespace cedar::topology {

namespace {

/// Longest wait for queued frames to leave at close.
constexpr std::chrono::milliseconds close_deadline{500};

actors::fault_sink spawn_supervisor(caf::actor_system& system,
                                    std::function<void(const actors::fault&)> on_fault) {
  return system.spawn([on_fault = std::move(on_fault)](
                          actors::fault_sink::pointer) -> actors::fault_sink::behavior_type {
    return {[on_fault](const actors::fault_ref& what) { on_fault(*what); }};
  });
}

/// UCX between processes of one host may use shared memory where the topology lists such a
/// transport.
transport::ucx::reach reach_of(const transport_plan& transport) {
  const bool shared = std::ranges::any_of(transport.tls, [](const std::string& name) {
    return name == "posix" || name == "sysv" || name == "sm" || name == "shm";
  });
  return shared ? transport::ucx::reach::shared_host : transport::ucx::reach::network;
}

}  // namespace

session::scheduler_limits scheduler_limits_of(const plan& topology,
                                              const model::model_config& config) {
  const limits_plan& limits = topology.limits();
  const model::schedule schedule(config);
  return {.rows_per_step = limits.rows_per_step,
          .requests_max = limits.requests,
          .queue_max = limits.requests * 64,
          .context_max = limits.context,
          .steps_in_flight = limits.steps_in_flight,
          .vocabulary = config.vocabulary,
          .lookback = config.engram_lookback(),
          .eos_tokens = config.eos_tokens,
          .image_token = model::image_token_of(config),
          .window = config.window,
          .encoder_layers = schedule.decoder_begin(),
          .decoder_layers = schedule.decoder_layers(),
          .prefill_rows = limits.prefill_rows,
          .kv_granule = limits.kv_granule,
          .kv_granules = limits.kv_granules,
          .prefix_granules = limits.prefix_granules,
          .prefix_step = model::ratios_lcm(schedule),
          .draft_tokens_max = limits.draft_tokens,
          .images = topology.reads_images() ? std::optional(vision::rules_of(config.vision))
                                            : std::nullopt};
}

result<transport::ucx::ucx_options> ucx_options_of(const plan& topology, node_id node) {
  const auto address = address_of(topology[node].address);
  if (!address) return fail(address.error().with("address of node '" + topology[node].name + "'"));
  transport::ucx::ucx_options options;
  options.bind_address = *address;
  options.carry = reach_of(topology.transport());
  options.devices = topology.transport().devices;
  return options;
}

node_runtime::node_runtime(caf::actor_system& system, const plan& topology,
                           const stage::model_source& model, node_settings settings)
    : system_(system),
      plan_(topology),
      model_(model),
      settings_(std::move(settings)),
      trace_(settings_.trace_events_max) {}

node_runtime::~node_runtime() {
  close();
}

result<std::unique_ptr<node_runtime>> node_runtime::open(caf::actor_system& system,
                                                         const plan& topology,
                                                         const stage::model_source& model,
                                                         node_settings settings) {
  std::unique_ptr<node_runtime> node(
      new node_runtime(system, topology, model, std::move(settings)));
  node->supervisor_ = spawn_supervisor(
      system,
      [events = node->settings_.events,
       here = " on node '" + topology[node->settings_.self].name + "'"](const actors::fault& what) {
        events.on_fault({"unit '" + what.where + "'" + here, what.what, what.epoch});
      });
  if (topology.nodes().size() > 1)
    if (const result<void> opened = node->open_port(); !opened) return fail(opened.error());
  if (const result<void> made = node->make_backends(); !made) return fail(made.error());
  if (const result<void> spawned = node->spawn_units(); !spawned) return fail(spawned.error());
  return node;
}

result<void> node_runtime::open_port() {
  switchboard_ = std::make_unique<actors::switchboard>(actors::switchboard::listener{
      [this](node_id peer) { peer_event(peer, nullptr); },
      [this](node_id peer, const error& reason) { peer_event(peer, &reason); },
      [this](node_id from, const error& what) {
        const std::scoped_lock lock(mutex_);
        settings_.events.on_fault({"node '" + plan_[from].name + "'", what, epoch_});
      }});
  auto port = open_node_port(plan_, settings_, *switchboard_);
  if (!port) return fail(port.error());
  port_ = std::move(*port);
  return {};
}

result<void> node_runtime::make_backends() {
  for (const unit_id id : plan_[settings_.self].units) {
    const unit_plan& unit = plan_[id];
    if (!unit.device || backends_.contains(*unit.device)) continue;
    auto made = backend_for(plan_, plan_[*unit.device]);
    if (!made) return fail(made.error());
    backends_.emplace(*unit.device, *std::move(made));
  }
  return {};
}

result<std::unique_ptr<stage::unit>> node_runtime::make_unit(const unit_plan& unit) {
  const kernels::backend& backend = *backends_.at(*unit.device);
  const std::size_t steps_max = plan_.limits().steps_in_flight;
  if (std::holds_alternative<vision_role>(unit.role)) {
    auto made = model_.make_vision(backend);
    if (!made) return fail(made.error());
    return stage::make_vision_unit(std::move(*made), steps_max);
  }
  if (std::holds_alternative<embedding_role>(unit.role)) {
    auto made = model_.make_embedding();
    if (!made) return fail(made.error());
    return plan_.reads_images() ? stage::make_image_embedding_unit(std::move(*made), steps_max)
                                : stage::make_embedding_unit(std::move(*made));
  }
  if (const auto* engram = std::get_if<engram_role>(&unit.role)) {
    auto made = model_.make_engram(engram->shards);
    if (!made) return fail(made.error());
    return stage::make_engram_unit(std::move(*made));
  }
  if (const auto* experts = std::get_if<experts_role>(&unit.role)) {
    auto made = model_.make_experts(backend, experts->slice);
    if (!made) return fail(made.error());
    return stage::make_expert_unit(std::move(*made));
  }
  if (const auto* indexer = std::get_if<indexer_role>(&unit.role)) {
    const limits_plan& limits = plan_.limits();
    return stage::make_indexer_unit(
        model_.make_indexer(backend, {indexer->shard, limits.requests, limits.context,
                                      limits.kv_granules, limits.prefix_granules}),
        steps_max);
  }
  if (std::holds_alternative<head_role>(unit.role)) {
    auto made = model_.make_head(backend);
    if (!made) return fail(made.error());
    return stage::make_head_unit(std::move(*made), steps_max);
  }
  if (std::holds_alternative<drafter_role>(unit.role)) {
    auto made = model_.make_drafter(backend, plan_.limits().requests);
    if (!made) return fail(made.error());
    return stage::make_drafter_unit(
        std::make_unique<stage::drafting>(std::move(*made), model_.config()), steps_max);
  }
  return make_stage(std::get<stage_role>(unit.role), backend);
}

result<std::unique_ptr<stage::unit>> node_runtime::make_stage(const stage_role& role,
                                                              const kernels::backend& backend) {
  auto made = model_.make_layers(
      backend,
      {role.layers.first, role.layers.last, plan_.limits().requests, plan_.limits().context,
       role.imports, role.exports, plan_.limits().kv_granules, plan_.limits().prefix_granules,
       role.tapped_layers, role.experts_elsewhere, role.indexers, role.engram_shards});
  if (!made) return fail(made.error());
  return stage::make_layer_unit(std::move(*made), plan_.limits().steps_in_flight);
}

result<void> node_runtime::spawn_unit(const unit_plan& unit) {
  if (std::holds_alternative<scheduler_role>(unit.role)) {
    session::scheduler_limits limits = scheduler_limits_of(plan_, model_.config());
    if (settings_.drafter != nullptr) limits.draft_tokens_max = model_.config().dspark.block_size;
    scheduler_ =
        actors::spawn_scheduler(system_, {limits, plan_.deadlines().step, settings_.listener,
                                          &trace_, settings_.drafter, plan_.limits().draft_policy});
    return {};
  }
  auto made = make_unit(unit);
  if (!made) return fail(made.error().with("unit '" + unit.name + "'"));
  const auto* engram = std::get_if<engram_role>(&unit.role);
  // A shard of a table may wait for its disk.
  const bool computes = std::holds_alternative<stage_role>(unit.role) ||
                        (engram != nullptr && engram->in_parts) ||
                        std::holds_alternative<experts_role>(unit.role) ||
                        std::holds_alternative<indexer_role>(unit.role) ||
                        std::holds_alternative<head_role>(unit.role) ||
                        std::holds_alternative<drafter_role>(unit.role) ||
                        std::holds_alternative<vision_role>(unit.role);
  units_[unit.id] =
      actors::spawn_unit(system_, {unit.name, std::move(*made), computes, supervisor_, &trace_});
  return {};
}

result<void> node_runtime::spawn_units() {
  for (const unit_id id : plan_[settings_.self].units)
    if (const result<void> spawned = spawn_unit(plan_[id]); !spawned) return spawned;
  return {};
}

std::string node_runtime::address() const {
  return port_ ? port_->address() : std::string{};
}

node_report node_runtime::report() {
  node_report out;
  out.node = plan_[settings_.self].name;
  for (const trace_event& event : trace_.take())
    out.events.push_back({static_cast<std::uint8_t>(event.kind), event.track, event.step,
                          event.begin_us, event.duration_us, event.bytes, event.rows,
                          event.decoder_rows});
  if (port_)
    for (const transport::peer_statistics& peer : port_->statistics().peers)
      out.links.push_back({peer.name, peer.transport, peer.frames_sent, peer.bytes_sent});
  out.tensors = model_.checkpoint().touched();
  out.engram = engram_reports();
  return out;
}

std::vector<engram_report> node_runtime::engram_reports() const {
  std::vector<engram_report> out;
  for (const auto& [unit, counts] : trace_.engram())
    out.push_back({unit, counts.rows_sent, counts.steps, counts.late, counts.waited_us});
  return out;
}

node_usage node_runtime::usage() const {
  node_usage out;
  for (const edge_total& total : trace_.totals())
    out.edges.push_back({total.edge, total.messages, total.bytes, total.waited_us});
  for (const auto& [unit, held] : trace_.held())
    out.caches.push_back({unit, held.pages, held.kept, held.rings});
  out.engram = engram_reports();
  return out;
}

void node_runtime::close() {
  const caf::scoped_actor self{system_};
  const auto end = [&](auto& actor) {
    if (!actor) return;
    self->send_exit(actor, caf::exit_reason::user_shutdown);
    self->wait_for(actor);
    actor = nullptr;
  };
  for (auto& [id, actor] : units_) end(actor);
  end(scheduler_);
  // Only now has nobody anything to send: links refer to the port.
  for (auto& [id, actor] : links_) end(actor);
  end(supervisor_);
  if (port_) static_cast<void>(port_->close(close_deadline));
  port_.reset();
}

}  // namespace cedar::topology
