// How a cluster's processes become a pipeline: topology, control plane, nodes, wiring.
#include <unistd.h>

#include <algorithm>
#include <caf/io/all.hpp>
#include <fstream>
#include <iterator>
#include <thread>

#include "actors/error_bridge.hpp"
#include "topology/launch/cluster.hpp"
#include "topology/launch/device_backend.hpp"
#include "topology/launch/host.hpp"
#include "topology/plan/render.hpp"

namespace cedar::topology {

namespace {

/// How often a wait looks whether a child has ended.
constexpr std::chrono::milliseconds look_interval{50};
/// An answer that does not come is noticed by the wait for it first: it can say what is missing.
constexpr std::chrono::seconds answer_grace{1};
/// Largest topology file.
constexpr std::uintmax_t topology_bytes_max = std::uintmax_t{1} << 20;

using wait_clock = std::chrono::steady_clock;

/// `text` as a shell reads it back.
std::string shell_word(const std::string& text) {
  constexpr std::string_view plain = "/._-+,:@%=";
  if (std::ranges::all_of(text, [&](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               plain.find(c) != std::string_view::npos;
      }))
    return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// What an answer says in the event that it becomes.
result<std::string> outcome_of(const std::string& address) {
  return address;
}
result<link_measurement> outcome_of(const link_measurement& found) {
  return found;
}
template <class Atom>
result<void> outcome_of(const Atom&) {
  return {};
}

}  // namespace

result<void> cluster::start_all() {
  if (const result<void> done = read_topology(); !done) return done;
  if (options_.emulate_links && options_.on_notice)
    options_.on_notice("emulating links: " + render_links(*plan_));
  start_limit_ = wait_clock::now() + plan_->deadlines().start;
  addresses_.resize(plan_->nodes().size());
  config_.emplace(remote());
  system_ = std::make_unique<caf::actor_system>(*config_);
  if (remote()) {
    if (const result<void> done = start_control(); !done) return done;
    for (const node_plan& node : plan_->nodes()) {
      if (node.id == plan_->client().id) continue;
      if (node.start == node_start::join)
        announce(node);
      else if (const result<void> done = spawn(node); !done)
        return done;
    }
  }
  progress("loading");
  if (const result<void> done = open_local(); !done) return done;
  if (const result<void> done = await(joined_, "join"); !done) return done;
  if (secret_) secret_->remove();
  if (const result<void> done = deploy_all(); !done) return done;
  if (const result<void> done = wire_all(); !done) return done;
  if (const result<void> done = measure_links(); !done) return done;
  return measure_costs();
}

result<void> cluster::read_topology() {
  std::error_code unreadable;
  const auto size = std::filesystem::file_size(options_.topology, unreadable);
  if (unreadable || size > topology_bytes_max)
    return fail(errc::not_found, "topology " + options_.topology.string() + ": " +
                                     (unreadable ? unreadable.message() : "larger than 1 MiB"));
  std::ifstream file(options_.topology, std::ios::binary);
  text_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  reading parsed = read_text(text_, options_.topology.string());
  if (options_.model.empty())
    parsed.check_model(parsed.value.client.value);
  else
    override_model(parsed.value, options_.model);
  if (options_.draft) {
    const std::string setting = to_string(*options_.draft);
    if (*options_.draft != session::draft_setting{} && !parsed.value.units.drafter &&
        parsed.mistakes.empty())
      return fail(errc::invalid_argument,
                  "draft " + setting + ": " + options_.topology.string() +
                      " places no drafter; add drafter: {device: DEVICE} to its units");
    override_draft(parsed.value, setting);
  }
  const std::filesystem::path folder = parsed.value.model_of(parsed.value.client.value);
  auto model = folder.empty() ? fail(errc::invalid_argument,
                                     options_.topology.string() +
                                         " names no model; add model: {path: ...} or give -m DIR")
                              : stage::model_source::open(folder);
  if (!model)
    return parsed.mistakes.empty() ? fail(model.error())
                                   : fail(errc::malformed, to_string(parsed.mistakes));
  model_ = std::move(*model);
  auto planned = make_plan(parsed, model_->config());
  if (!planned) return fail(errc::malformed, to_string(planned.error()));
  plan_.emplace(std::move(*planned));
  if (options_.emulate_links && plan_->links().empty())
    return fail(errc::invalid_argument,
                options_.topology.string() +
                    " declares no links to emulate; write links: [{between: [NODE, NODE], "
                    "latency_ms: 20}], or leave --emulate-links out");
  for (const node_plan& node : plan_->nodes())
    if (!remote() || node.id == plan_->client().id)
      if (const result<void> usable = check_devices(*plan_, node.id); !usable) return usable;
  const result<std::uint64_t> fingerprint = model_->fingerprint();
  if (!fingerprint) return fail(fingerprint.error());
  fingerprint_ = *fingerprint;
  return {};
}

result<void> cluster::start_control() {
  const auto& file = plan_->security().secret_file;
  auto secret = file ? secret_file::read(*file) : secret_file::create();
  if (!secret) return fail(secret.error());
  secret_.emplace(std::move(*secret));
  controller_settings settings;
  settings.secret = secret_->bytes();
  for (const node_plan& node : plan_->nodes())
    if (node.id != plan_->client().id) settings.nodes.insert(node.name);
  settings.start_limit = plan_->deadlines().start;
  settings.on_joined = [this](const std::string& node, const agent_actor& agent) {
    events_.push(joined_event{node, agent});
  };
  settings.on_left = [this](const std::string& node, const caf::actor_addr& agent) {
    events_.push(left_event{node, agent});
  };
  settings.on_refused = [this](const std::string& why) { events_.push(refused_event{why}); };
  settings.on_fault = [this](const actors::fault& what) { events_.push(what); };
  settings.on_lost = [this](const std::string& node, const std::string& peer, const error& reason,
                            epoch_id epoch) {
    const node_plan* one = plan_->find_node(node);
    const node_plan* other = plan_->find_node(peer);
    if (one != nullptr && other != nullptr)
      events_.push(cut_event{one->id, other->id, reason, epoch});
  };
  controller_ = spawn_controller(*system_, std::move(settings));
  const control_plan& control = plan_->control();
  const std::string here = "control plane at " + control.host;
  const auto address = address_of(control.host);
  if (!address) return fail(address.error().with(here));
  // With reuse a port that is written in the file is free again as soon as its last user has ended.
  const auto port = system_->middleman().publish(controller_, control.port, address->c_str(), true);
  if (!port)
    return fail(
        actors::from_caf(*system_, port.error()).with(here + ":" + std::to_string(control.port)));
  control_port_ = *port;
  return {};
}

std::string cluster::command_of(const node_plan& node) const {
  return "cedar node --join " + plan_->control().host + ":" + std::to_string(control_port_) +
         " --name " + node.name + " --secret " +
         shell_word(std::filesystem::absolute(secret_->path()).string());
}

void cluster::announce(const node_plan& node) const {
  if (options_.on_notice)
    options_.on_notice("waiting for node '" + node.name + "': " + command_of(node));
}

result<void> cluster::spawn(const node_plan& node) {
  auto child = child_process::start(
      options_.program.string(),
      {"node", "--join", plan_->control().host + ":" + std::to_string(control_port_), "--name",
       node.name, "--secret", secret_->path().string(), "--parent", std::to_string(::getpid())});
  if (!child) return fail(child.error().with("node '" + node.name + "'"));
  progress("node '" + node.name + "' started as process " + std::to_string(child->pid()));
  children_.emplace(node.id, std::move(*child));
  return {};
}

std::optional<error> cluster::ended_child() {
  for (auto& [id, child] : children_)
    if (const auto how = child.ended()) {
      lose(id);
      return error{errc::peer_lost, name_of(id) + " ended while starting: " + *how};
    }
  return std::nullopt;
}

std::chrono::milliseconds cluster::time_left() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(start_limit_ - wait_clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

result<void> cluster::await(const progress_set& done, const std::string& step) {
  while (done.size() < plan_->nodes().size()) {
    if (auto ended = ended_child()) return fail(std::move(*ended));
    if (wait_clock::now() >= start_limit_) {
      blame_missing(done);
      return fail(not_done(done, step));
    }
    auto news = events_.pop(look_interval);
    if (!news) continue;
    if (const result<void> noted = note(*news); !noted) return noted;
  }
  return {};
}

/// Names every node that is missing, and what to do about those that a person starts.
error cluster::not_done(const progress_set& done, const std::string& step) const {
  std::string missing;
  std::string commands;
  for (const node_plan& node : plan_->nodes()) {
    if (done.contains(node.id)) continue;
    missing += (missing.empty() ? "" : ", ") + name_of(node.id);
    if (node.start == node_start::join && !joined_.contains(node.id))
      commands += "\n  run on its host: " + command_of(node);
  }
  return {errc::timeout,
          missing + " did not " + step + " within " +
              std::to_string(plan_->deadlines().start.count()) + " ms (deadlines_ms.start)" +
              (last_refusal_.empty() ? "" : "; turned away: " + last_refusal_) + commands};
}

/// A node's end may be heard of before the reason that it gave.
error cluster::describe_leaving(const std::string& node) {
  const node_id id = plan_->find_node(node)->id;
  lose(id);
  return root_cause({errc::peer_lost, name_of(id) + " ended while starting"});
}

void cluster::note_refusal(const refused_event& refused) {
  last_refusal_ = refused.why;
  if (options_.on_notice) options_.on_notice("turned away: " + refused.why);
}

tl::unexpected<error> cluster::blame(node_id node, error what) {
  blamed_.insert(node);
  return fail(what.with(name_of(node)));
}

/// Those that the client cannot reach; if it reaches all, those that do not answer.
void cluster::blame_missing(const progress_set& done) {
  progress_set silent;
  progress_set unreachable;
  for (const node_plan& node : plan_->nodes()) {
    if (done.contains(node.id) || local_.contains(node.id)) continue;
    silent.insert(node.id);
    if (!local_.at(plan_->client().id)->reaches(node.id)) unreachable.insert(node.id);
  }
  blamed_.merge(unreachable.empty() ? silent : unreachable);
}

result<void> cluster::note_answer(const event& news) {
  if (const auto* deployed = std::get_if<deployed_event>(&news)) {
    if (!deployed->address) return blame(deployed->node, deployed->address.error());
    addresses_[deployed->node.value] = *deployed->address;
    deployed_.insert(deployed->node);
  } else if (const auto* parted = std::get_if<parted_event>(&news)) {
    if (!parted->done) return blame(parted->node, parted->done.error());
    parted_.insert(parted->node);
  } else if (const auto* measured = std::get_if<link_event>(&news)) {
    link_measured_ = measured->found;
  } else if (const auto* wired = std::get_if<wired_event>(&news)) {
    if (wired->bound) {
      wired_.insert(wired->node);
      return {};
    }
    // Connections fail at either end; anything else is the node's own.
    const error& what = wired->bound.error();
    const bool connecting = what.code == errc::peer_lost || what.code == errc::timeout ||
                            what.code == errc::cancelled || what.code == errc::refused;
    if (!connecting && !local_.contains(wired->node)) return blame(wired->node, what);
    return fail(local_.contains(wired->node) ? what : what.with(name_of(wired->node)));
  }
  return {};
}

result<void> cluster::note(event& news) {
  if (is_stale(news)) return {};
  if (const auto* joined = std::get_if<joined_event>(&news)) {
    note_joined(*joined);
  } else if (const auto* left = std::get_if<left_event>(&news)) {
    // How a child ended is heard from the child.
    if (plan_->find_node(left->node)->start == node_start::join)
      return fail(describe_leaving(left->node));
  } else if (const auto* refused = std::get_if<refused_event>(&news)) {
    note_refusal(*refused);
  } else if (const auto* lost = std::get_if<lost_event>(&news)) {
    return fail(describe_loss(*lost));
  } else if (const auto* cut = std::get_if<cut_event>(&news)) {
    return fail(root_cause(describe_cut(*cut)));
  } else if (const auto* what = std::get_if<actors::fault>(&news)) {
    return fail(what->what.with(what->where));
  } else if (const auto* measured = std::get_if<costs_event>(&news)) {
    measured_ = measured->costs;
  } else if (std::holds_alternative<interrupted_event>(news)) {
    if (others_) others_(news);
    return fail(errc::cancelled, "interrupted");
  } else if (std::holds_alternative<end_event>(news)) {
    if (others_) others_(news);
    return fail(errc::cancelled, "the server is stopping");
  } else if (const result<void> answered = note_answer(news); !answered) {
    return answered;
  } else if (others_) {
    others_(news);
  }
  return {};
}

void cluster::note_joined(const joined_event& joined) {
  const node_id node = plan_->find_node(joined.node)->id;
  agents_[node] = joined.agent;
  joined_.insert(node);
  deployed_.erase(node);
  const bool nobody_is_connected = left_.erase(node) > 0;
  if (lost_.erase(node) > 0 && !nobody_is_connected) former_.insert(node);
  progress(name_of(node) + " joined");
}

node_settings cluster::settings_of(const node_plan& node) {
  node_settings settings;
  settings.self = node.id;
  settings.fingerprint = fingerprint_;
  if (secret_) settings.secret = secret_->bytes();
  settings.trace_events_max = options_.trace_events_max;
  settings.emulate_links = options_.emulate_links;
  settings.hub = hub_.get();
  settings.listener = listener();
  settings.drafter = options_.drafter;
  settings.events.on_fault = [this](const actors::fault& what) { events_.push(what); };
  settings.events.on_peer_lost = [this](node_id peer, const error& reason, epoch_id epoch) {
    events_.push(lost_event{peer, reason, epoch});
  };
  return settings;
}

result<void> cluster::open_local() {
  if (!remote() && plan_->nodes().size() > 1) hub_ = std::make_unique<transport::loopback_hub>();
  for (const node_plan& node : plan_->nodes()) {
    if (remote() && node.id != plan_->client().id) continue;
    auto runtime = node_runtime::open(*system_, *plan_, *model_, settings_of(node));
    if (!runtime) return fail(runtime.error());
    addresses_[node.id.value] = (*runtime)->address();
    local_[node.id] = std::move(*runtime);
    joined_.insert(node.id);
    deployed_.insert(node.id);
  }
  if (hub_) hub_->run();
  return {};
}

template <class Event, class Answer, class... Arguments>
void cluster::ask(node_id node, const Arguments&... arguments) {
  askers_.push_back(
      system_->spawn([=, this, to = agents_.at(node), epoch = epoch_,
                      limit = time_left() + answer_grace](caf::event_based_actor* self) {
        self->request(to, limit, arguments...)
            .then(
                [=, this](const Answer& answer) {
                  events_.push(Event{node, outcome_of(answer), epoch});
                },
                [=, this](const caf::error& what) {
                  events_.push(Event{node, fail(actors::from_caf(*system_, what)), epoch});
                });
      }));
}

result<void> cluster::deploy_all() {
  const std::string model =
      options_.model.empty() ? std::string{} : std::filesystem::absolute(options_.model).string();
  const deployment order{std::filesystem::absolute(options_.topology).string(),
                         text_,
                         model,
                         fingerprint_,
                         options_.trace_events_max,
                         options_.emulate_links,
                         options_.draft ? to_string(*options_.draft) : std::string{}};
  for (const auto& [id, agent] : agents_)
    if (!deployed_.contains(id)) ask<deployed_event, std::string>(id, deploy_atom::value, order);
  return await(deployed_, "load its units");
}

void cluster::ask_to_part(node_id node, const std::vector<node_id>& peers) {
  std::vector<std::string> names;
  for (const node_id peer : peers) names.push_back((*plan_)[peer].name);
  ask<parted_event, parted_atom>(node, part_atom::value, names, epoch_.value);
}

void cluster::ask_to_measure(node_id node, node_id peer) {
  ask<link_event, link_measurement>(node, measure_atom::value, (*plan_)[peer].name);
}

result<void> cluster::wire_all() {
  wired_.clear();
  for (const auto& [id, agent] : agents_)
    ask<wired_event, actors::bound_atom>(id, wire_atom::value, addresses_, epoch_.value);
  // At the same time: each waits until the others have connected.
  std::vector<std::jthread> threads;
  for (const auto& [id, runtime] : local_)
    threads.emplace_back([this, node = id, here = runtime.get(), epoch = epoch_] {
      events_.push(wired_event{node, here->wire(addresses_, epoch), epoch});
    });
  result<void> wired = await(wired_, "connect");
  if (wired) return wired;
  for (const auto& [id, runtime] : local_) {
    const result<void> ended = runtime->part({}, epoch_id{epoch_.value + 1});
    static_cast<void>(ended);  // nothing is parted from
  }
  return wired;
}

}  // namespace cedar::topology
