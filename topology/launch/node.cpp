#include "topology/launch/node.hpp"

#include <algorithm>
#include <caf/io/all.hpp>
#include <mutex>
#include <optional>
#include <thread>

#include "actors/error_bridge.hpp"
#include "topology/launch/device_backend.hpp"
#include "topology/launch/node_runtime.hpp"
#include "topology/launch/secret.hpp"

namespace cedar::topology {

namespace {

/// Longest wait for the last messages of an agent.
constexpr std::chrono::seconds release_limit{1};

/// Does one of these, then ends.
using helper_actor = caf::typed_actor<
    caf::replies_to<wire_atom, std::vector<std::string>, std::uint32_t>::with<actors::bound_atom>,
    caf::replies_to<measure_atom, std::string>::with<link_measurement>>;

/// Everything that the agent makes of a deployment; outlives the agent and its helpers.
struct node_state {
  std::string name;
  std::filesystem::path own_model;  ///< instead of the topology's, if not empty
  transport::shared_secret secret;
  std::unique_ptr<stage::model_source> model;
  std::optional<plan> topology;
  std::unique_ptr<node_runtime> runtime;
  helper_actor helper;  ///< the latest; the agent's, and after its end the node's

  /// Why the node ends, if not because it was told to: the first reason counts. From any thread.
  void end_with(const error& why) {
    const std::scoped_lock lock(mutex_);
    if (!fatal_ && !stopping_) fatal_ = why;
  }
  /// The client said so: what goes wrong from now on, such as the client's own end, is no fault.
  void stop() {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  void begin_wiring() {
    const std::scoped_lock lock(mutex_);
    began_wiring_ = true;
  }
  /// A wiring that failed is why the node ends, unless a later one succeeds.
  void end_wiring(const result<void>& wired) {
    const std::scoped_lock lock(mutex_);
    unwired_ = wired ? std::nullopt : std::optional(wired.error());
  }
  /// From then on, the data plane tells when the client is lost.
  bool began_wiring() const {
    const std::scoped_lock lock(mutex_);
    return began_wiring_;
  }
  std::optional<error> fatal() const {
    const std::scoped_lock lock(mutex_);
    return fatal_ || stopping_ ? fatal_ : unwired_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<error> fatal_;
  std::optional<error> unwired_;
  bool stopping_ = false;
  bool began_wiring_ = false;
};

result<void> prepare(node_state& state, const deployment& order) {
  auto document = parse_document(order.text, order.file);
  if (!document) return fail(errc::malformed, to_string(document.error()));
  if (!order.model.empty()) override_model(*document, order.model);
  if (!order.draft.empty()) override_draft(*document, order.draft);
  auto model = stage::model_source::open(state.own_model.empty() ? document->model_of(state.name)
                                                                 : state.own_model);
  if (!model) return fail(model.error());
  state.model = std::move(*model);
  auto planned = make_plan(*document, state.model->config());
  const node_plan* const self = planned ? planned->find_node(state.name) : nullptr;
  if (self != nullptr)
    if (const result<void> usable = check_devices(*planned, self->id); !usable) return usable;
  const result<std::uint64_t> fingerprint = state.model->fingerprint();
  if (!fingerprint) return fail(fingerprint.error());
  if (*fingerprint != order.fingerprint)
    return fail(errc::mismatch, "the checkpoint at " + state.model->folder().string() +
                                    " is not the client's: configuration or tensors differ");
  if (!planned) return fail(errc::malformed, to_string(planned.error()));
  state.topology.emplace(std::move(*planned));
  return {};
}

result<void> deploy(caf::actor_system& system, node_state& state, const deployment& order,
                    node_events events) {
  if (const result<void> prepared = prepare(state, order); !prepared) return prepared;
  const node_plan* self = state.topology->find_node(state.name);
  if (self == nullptr) return fail(errc::refused, "the topology has no node '" + state.name + "'");
  node_settings settings;
  settings.self = self->id;
  settings.fingerprint = order.fingerprint;
  settings.secret = state.secret;
  settings.trace_events_max = order.trace_events_max;
  settings.emulate_links = order.emulate_links;
  settings.events = std::move(events);
  auto runtime = node_runtime::open(system, *state.topology, *state.model, std::move(settings));
  if (!runtime) return fail(runtime.error());
  state.runtime = std::move(*runtime);
  return {};
}

using agent_pointer = agent_actor::pointer;

node_events events_of(agent_pointer self, const controller_actor& controller, node_state& state) {
  const auto agent = caf::actor_cast<agent_actor>(self);
  return {[controller](const actors::fault& what) {
            caf::anon_send(controller, fault_atom::value, what.where,
                           static_cast<std::uint8_t>(what.what.code), what.what.message,
                           what.epoch.value);
          },
          [agent, controller, &state](node_id peer, const error& reason, epoch_id epoch) {
            const node_plan& lost = (*state.topology)[peer];
            if (peer == state.topology->client().id) {
              state.end_with(reason.with("client '" + lost.name + "'"));
              caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
              return;
            }
            caf::anon_send(controller, lost_atom::value, state.name, lost.name,
                           static_cast<std::uint8_t>(reason.code), reason.message, epoch.value);
          }};
}

result<link_measurement> measure(const node_state& state, const std::string& name) {
  const node_plan* peer = state.topology->find_node(name);
  if (peer == nullptr) return fail(errc::refused, "the topology has no node '" + name + "'");
  return state.runtime->measure(
      peer->id, std::chrono::steady_clock::now() + state.topology->deadlines().start);
}

/// Waits for others in a thread of its own, so that the agent can end that.
helper_actor::behavior_type helper_behavior(helper_actor::pointer self, node_state* state) {
  return {[self, state](wire_atom, const std::vector<std::string>& addresses,
                        std::uint32_t epoch) -> caf::result<actors::bound_atom> {
            const result<void> wired = state->runtime->wire(addresses, epoch_id{epoch});
            state->end_wiring(wired);
            self->quit();
            if (!wired) return actors::to_caf(wired.error());
            return actors::bound_atom::value;
          },
          [self, state](measure_atom, const std::string& peer) -> caf::result<link_measurement> {
            auto found = measure(*state, peer);
            self->quit();
            if (!found) return actors::to_caf(found.error());
            return std::move(*found);
          }};
}

result<void> part(const node_state& state, const std::vector<std::string>& names, epoch_id epoch) {
  if (!state.runtime) return {};
  std::vector<node_id> peers;
  for (const std::string& name : names)
    if (const node_plan* peer = state.topology->find_node(name)) peers.push_back(peer->id);
  return state.runtime->part(peers, epoch);
}

agent_actor::behavior_type agent_behavior(agent_pointer self, const controller_actor& controller,
                                          node_state* state) {
  self->set_exception_handler([state](std::exception_ptr& thrown) -> caf::error {
    state->end_with(actors::defect_of(thrown));
    return caf::exit_reason::unhandled_exception;
  });
  return {
      [self, controller, state](deploy_atom, const deployment& order) -> caf::result<std::string> {
        const auto events = events_of(self, controller, *state);
        const result<void> deployed = deploy(self->system(), *state, order, events);
        if (!deployed) {
          state->end_with(deployed.error());
          return actors::to_caf(deployed.error());
        }
        return state->runtime->address();
      },
      [self, state](wire_atom, const std::vector<std::string>& addresses,
                    std::uint32_t epoch) -> caf::result<actors::bound_atom> {
        if (!state->runtime) return actors::to_caf({errc::refused, "nothing is deployed here"});
        state->begin_wiring();
        state->helper = self->system().spawn<caf::detached>(helper_behavior, state);
        return self->delegate(state->helper, wire_atom::value, addresses, epoch);
      },
      [self, state](measure_atom, const std::string& peer) -> caf::result<link_measurement> {
        if (!state->began_wiring()) return actors::to_caf({errc::refused, "nothing is wired here"});
        state->helper = self->system().spawn<caf::detached>(helper_behavior, state);
        return self->delegate(state->helper, measure_atom::value, peer);
      },
      [state](part_atom, const std::vector<std::string>& peers,
              std::uint32_t epoch) -> caf::result<parted_atom> {
        const result<void> parted = part(*state, peers, epoch_id{epoch});
        if (!parted) return actors::to_caf(parted.error());
        return parted_atom::value;
      },
      [state](report_atom) -> caf::result<node_report> {
        if (!state->runtime) return node_report{};
        return state->runtime->report();
      },
      [state](usage_atom) { return state->runtime ? state->runtime->usage() : node_usage{}; },
      [self, state](stop_atom) {
        state->stop();
        self->quit();
      },
      [self, state](dismiss_atom) {
        state->end_with({errc::peer_lost, "the client has given this node up"});
        self->quit();
      },
  };
}

result<controller_actor> find_controller(caf::actor_system& system, const node_options& options) {
  const caf::scoped_actor self{system};
  result<controller_actor> found = fail(errc::timeout, "no answer");
  self->request(system.middleman().actor_handle(), options.join_deadline, caf::connect_atom::value,
                options.controller_host, options.controller_port)
      .receive(
          [&](const caf::node_id&, const caf::strong_actor_ptr& actor,
              const std::set<std::string>&) {
            if (actor) found = caf::actor_cast<controller_actor>(actor);
          },
          [&](const caf::error& what) { found = fail(actors::from_caf(system, what)); });
  if (!found)
    return fail(found.error().with("client at " + options.controller_host + ":" +
                                   std::to_string(options.controller_port)));
  return found;
}

/// Proves the secret in the agent's name, so that the controller answers the agent. Returns how
/// long the client's start may take.
result<std::chrono::milliseconds> join(caf::actor_system& system,
                                       const controller_actor& controller, const agent_actor& agent,
                                       const node_state& state,
                                       std::chrono::milliseconds deadline) {
  const caf::scoped_actor self{system};
  result<std::string> nonce = fail(errc::timeout, "no answer");
  self->request(controller, deadline, hello_atom::value, state.name, program_identity())
      .receive([&](std::string& text) { nonce = std::move(text); },
               [&](const caf::error& what) { nonce = fail(actors::from_caf(system, what)); });
  if (!nonce) return fail(nonce.error().with("joining"));
  result<std::chrono::milliseconds> joined = fail(errc::timeout, "no answer");
  self->request(controller, deadline, join_atom::value, state.name,
                proof_of(state.secret, *nonce + state.name), agent)
      .receive([&](std::uint64_t start_limit) { joined = std::chrono::milliseconds(start_limit); },
               [&](const caf::error& what) { joined = fail(actors::from_caf(system, what)); });
  if (!joined) return fail(joined.error().with("joining"));
  return joined;
}

/// CAF 0.17 waits at its end, for ever, for a detached actor that an undelivered message still
/// names; its middleman delivers none by then. So it is given the time to deliver what it has.
void await_release(agent_actor agent) {
  const auto until = std::chrono::steady_clock::now() + release_limit;
  const auto weak = caf::actor_cast<caf::weak_actor_ptr>(agent);
  agent = nullptr;
  while (weak.lock() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Returns when the agent is over: because it was told, or because the client is gone, or is silent
/// for `start_limit` before it has wired this node.
void await_end(caf::actor_system& system, const agent_actor& agent,
               const controller_actor& controller, node_state& state,
               std::chrono::milliseconds start_limit) {
  const auto until = std::chrono::steady_clock::now() + start_limit;
  const caf::scoped_actor self{system};
  self->monitor(agent);
  self->monitor(controller);
  bool over = false;
  const auto end_with = [&](const error& why) {
    state.end_with(why);
    self->send_exit(agent, caf::exit_reason::user_shutdown);
  };
  const auto on_down = [&](const caf::down_msg& down) {
    over = down.source == caf::actor_cast<caf::actor_addr>(agent);
    if (!over) end_with({errc::peer_lost, "the client is gone"});
  };
  bool timed = true;
  while (!over) {
    if (!timed) {
      self->receive(on_down);
      continue;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::max(until - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration(0)));
    self->receive(
        on_down, caf::after(left) >> [&] {
          timed = false;
          if (!state.began_wiring())
            end_with({errc::timeout, "the client did not start this node within " +
                                         std::to_string(start_limit.count()) +
                                         " ms (deadlines_ms.start)"});
        });
  }
}

/// The last helper ends, before what it works on does.
void await_helper(caf::actor_system& system, node_state& state) {
  if (!state.helper) return;
  if (state.runtime) {
    state.runtime->give_up_wiring();
    state.runtime->give_up_measuring();
  }
  const caf::scoped_actor self{system};
  self->wait_for(state.helper);
  state.helper = nullptr;
}

}  // namespace

result<void> run_node(const node_options& options) {
  auto secret = secret_file::read(options.secret);
  if (!secret) return fail(secret.error());
  system_config config(true);
  caf::actor_system system(config);
  const auto controller = find_controller(system, options);
  if (!controller) return fail(controller.error());
  node_state state;
  state.name = options.name;
  state.own_model = options.model;
  state.secret = secret->bytes();
  agent_actor agent = system.spawn<caf::detached>(agent_behavior, *controller, &state);
  const auto start_limit = join(system, *controller, agent, state, options.join_deadline);
  if (start_limit) {
    if (options.on_progress)
      options.on_progress("joined the client at " + options.controller_host + ":" +
                          std::to_string(options.controller_port));
    await_end(system, agent, *controller, state, *start_limit);
  } else {
    caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
  }
  await_helper(system, state);
  state.runtime.reset();
  await_release(std::move(agent));
  if (!start_limit) return fail(start_limit.error());
  if (const auto fatal = state.fatal()) return fail(*fatal);
  if (options.on_progress) options.on_progress("told to stop");
  return {};
}

}  // namespace cedar::topology
