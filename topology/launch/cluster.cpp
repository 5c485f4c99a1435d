#include "topology/launch/cluster.hpp"

#include <unistd.h>

#include <algorithm>
#include <caf/io/all.hpp>
#include <fstream>
#include <iterator>
#include <thread>

#include "actors/error_bridge.hpp"
#include "topology/launch/host.hpp"

namespace cedar::topology {

namespace {

/// How often a wait looks whether a child has ended.
constexpr std::chrono::milliseconds look_interval{50};
/// Longest wait for nodes to end by themselves when something has gone wrong.
constexpr std::chrono::milliseconds brief_drain{300};
/// An answer that does not come is noticed by the wait for it first: it can say what is missing.
constexpr std::chrono::seconds answer_grace{1};
/// Largest topology file.
constexpr std::uintmax_t topology_bytes_max = std::uintmax_t{1} << 20;

using wait_clock = std::chrono::steady_clock;

std::string request_count(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " request" : " requests");
}

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

}  // namespace

/// Requests of one generate().
struct cluster::progress_of_requests {
  std::map<request_id, std::size_t> index_of;
  std::vector<session::usage> used;
  std::size_t submitted = 0;
  std::size_t unfinished = 0;
};

cluster::~cluster() {
  stop();
}

void cluster::progress(const std::string& what) const {
  if (options_.on_progress) options_.on_progress(what);
}

bool cluster::remote() const noexcept {
  return plan_->nodes().size() > 1 && plan_->transport().kind == transport_kind::ucx;
}

result<void> cluster::start() {
  result<void> started = start_all();
  if (started) {
    ready_ = true;
    progress("ready");
    return started;
  }
  failure_ = started.error();
  stop();
  return started;
}

result<void> cluster::start_all() {
  if (const result<void> done = read_topology(); !done) return done;
  start_limit_ = wait_clock::now() + plan_->deadlines().start;
  addresses_.resize(plan_->nodes().size());
  config_.emplace(remote());
  system_ = std::make_unique<caf::actor_system>(*config_);
  if (remote()) {
    if (const result<void> done = start_control(); !done) return done;
    if (const result<void> done = spawn_nodes(); !done) return done;
  }
  progress("loading");
  if (const result<void> done = open_local(); !done) return done;
  if (const result<void> done = await(joined_, "join"); !done) return done;
  if (secret_) secret_->remove();
  if (const result<void> done = deploy_all(); !done) return done;
  return wire_all();
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
  if (!options_.model.empty()) override_model(parsed.value, options_.model);
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
  settings.on_left = [this](const std::string& node) { events_.push(left_event{node}); };
  settings.on_refused = [this](const std::string& why) { events_.push(refused_event{why}); };
  settings.on_fault = [this](const actors::fault& what) { events_.push(what); };
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

result<void> cluster::spawn_nodes() {
  for (const node_plan& node : plan_->nodes()) {
    if (node.id == plan_->client().id) continue;
    if (node.start == node_start::join) {
      if (options_.on_notice)
        options_.on_notice("waiting for node '" + node.name + "': " + command_of(node));
      continue;
    }
    auto child = child_process::start(
        options_.program.string(),
        {"node", "--join", plan_->control().host + ":" + std::to_string(control_port_), "--name",
         node.name, "--secret", secret_->path().string(), "--parent", std::to_string(::getpid())});
    if (!child) return fail(child.error().with("node '" + node.name + "'"));
    progress("node '" + node.name + "' started as process " + std::to_string(child->pid()));
    children_.emplace(node.id, std::move(*child));
  }
  return {};
}

std::optional<error> cluster::ended_child() {
  for (auto& [id, child] : children_)
    if (const auto how = child.ended())
      return error{errc::peer_lost, name_of(id) + " ended while starting: " + *how};
  return std::nullopt;
}

std::chrono::milliseconds cluster::time_left() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(start_limit_ - wait_clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

result<void> cluster::await(const progress_set& done, const std::string& step) {
  while (done.size() < plan_->nodes().size()) {
    if (auto ended = ended_child()) return fail(std::move(*ended));
    if (wait_clock::now() >= start_limit_) return fail(not_done(done, step));
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
  lost_.insert(id);
  return root_cause({errc::peer_lost, name_of(id) + " ended while starting"});
}

void cluster::note_refusal(const refused_event& refused) {
  last_refusal_ = refused.why;
  if (options_.on_notice) options_.on_notice("turned away: " + refused.why);
}

result<void> cluster::note(event& news) {
  if (const auto* joined = std::get_if<joined_event>(&news)) {
    const node_id node = plan_->find_node(joined->node)->id;
    agents_[node] = joined->agent;
    joined_.insert(node);
    progress(name_of(node) + " joined");
  } else if (const auto* left = std::get_if<left_event>(&news)) {
    // How a child ended is heard from the child.
    if (plan_->find_node(left->node)->start == node_start::join)
      return fail(describe_leaving(left->node));
  } else if (const auto* refused = std::get_if<refused_event>(&news)) {
    note_refusal(*refused);
  } else if (const auto* deployed = std::get_if<deployed_event>(&news)) {
    if (!deployed->address) return fail(deployed->address.error().with(name_of(deployed->node)));
    addresses_[deployed->node.value] = *deployed->address;
    deployed_.insert(deployed->node);
  } else if (const auto* wired = std::get_if<wired_event>(&news)) {
    if (!wired->bound) return fail(wired->bound.error());
    wired_.insert(wired->node);
  } else if (const auto* lost = std::get_if<lost_event>(&news)) {
    return fail(describe_loss(*lost));
  } else if (const auto* what = std::get_if<actors::fault>(&news)) {
    return fail(what->what.with(what->where));
  } else if (std::holds_alternative<interrupted_event>(news)) {
    return fail(errc::cancelled, "interrupted");
  }
  return {};
}

node_settings cluster::settings_of(const node_plan& node) {
  node_settings settings;
  settings.self = node.id;
  settings.fingerprint = fingerprint_;
  if (secret_) settings.secret = secret_->bytes();
  settings.trace_events_max = options_.trace_events_max;
  settings.hub = hub_.get();
  settings.listener = listener();
  settings.events.on_fault = [this](const actors::fault& what) { events_.push(what); };
  settings.events.on_peer_lost = [this](node_id peer, const error& reason) {
    events_.push(lost_event{peer, reason});
  };
  return settings;
}

/// "lost node 'back' (stage 'decoder' layers 6-11, head): connection reset; its process: signal 9".
error cluster::describe_loss(const lost_event& lost) {
  lost_.insert(lost.node);
  std::string units;
  for (const unit_id id : (*plan_)[lost.node].units) {
    const unit_plan& unit = (*plan_)[id];
    units += units.empty() ? "" : ", ";
    if (const auto* stage = std::get_if<stage_role>(&unit.role))
      units += "stage '" + unit.name + "' layers " + std::to_string(stage->layers.first) + "-" +
               std::to_string(stage->layers.last);
    else
      units += unit.name;
  }
  error out = lost.reason.with("lost " + name_of(lost.node) + " (" + units + ")");
  const auto child = children_.find(lost.node);
  if (child != children_.end() && child->second.wait(look_interval))
    out.message += "; its process: " + *child->second.ended();
  return out;
}

actors::scheduler_listener cluster::listener() {
  return {
      [this](const flow::proposal& proposal, const std::vector<session::row_event>& events) {
        events_.push(rows_event{proposal, events});
      },
      [this](request_id request, const session::usage& used) {
        events_.push(finished_event{request, used});
      },
      [this](flow::tap tap) { events_.push(std::move(tap)); },
      [this](const session::scheduler_load& load) {
        const std::scoped_lock lock(load_mutex_);
        load_ = load;
      },
      [this](const std::vector<request_id>&, const actors::fault& what) { events_.push(what); }};
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

template <class Answer, class OnAnswer, class OnError, class... Arguments>
void cluster::ask_agents(OnAnswer on_answer, OnError on_error, const Arguments&... arguments) {
  for (const auto& [id, agent] : agents_)
    askers_.push_back(
        system_->spawn([=, this, node = id, to = agent,
                        limit = time_left() + answer_grace](caf::event_based_actor* self) {
          self->request(to, limit, arguments...)
              .then([=](const Answer& answer) { on_answer(node, answer); },
                    [=, this](const caf::error& what) {
                      on_error(node, actors::from_caf(*system_, what));
                    });
        }));
}

result<void> cluster::deploy_all() {
  const std::string model =
      options_.model.empty() ? std::string{} : std::filesystem::absolute(options_.model).string();
  const deployment order{std::filesystem::absolute(options_.topology).string(), text_, model,
                         fingerprint_, options_.trace_events_max};
  ask_agents<std::string>(
      [this](node_id node, const std::string& address) {
        events_.push(deployed_event{node, address});
      },
      [this](node_id node, error what) {
        events_.push(deployed_event{node, fail(std::move(what))});
      },
      deploy_atom::value, order);
  return await(deployed_, "load its units");
}

result<void> cluster::wire_all() {
  ask_agents<actors::bound_atom>(
      [this](node_id node, actors::bound_atom) {
        events_.push(wired_event{node, {}});
      },
      [this](node_id node, error what) {
        events_.push(wired_event{node, fail(what.with(name_of(node)))});
      },
      wire_atom::value, addresses_);
  // At the same time: each waits until the others have connected.
  std::vector<std::jthread> threads;
  for (const auto& [id, runtime] : local_)
    threads.emplace_back([this, node = id, here = runtime.get()] {
      events_.push(wired_event{node, here->wire(addresses_)});
    });
  result<void> wired = await(wired_, "connect");
  if (!wired)
    for (const auto& [id, runtime] : local_) runtime->give_up_wiring();
  return wired;
}

error cluster::root_cause(error first) {
  std::vector<event> of_no_use;
  return root_cause(std::move(first), of_no_use);
}

error cluster::root_cause(error first, std::vector<event>& others) {
  const auto until = wait_clock::now() + look_interval;
  while (auto news = events_.pop(std::chrono::duration_cast<std::chrono::milliseconds>(
             std::max(until - wait_clock::now(), wait_clock::duration::zero())))) {
    if (const auto* lost = std::get_if<lost_event>(&*news)) {
      return describe_loss(*lost);
    } else if (const auto* deployed = std::get_if<deployed_event>(&*news)) {
      if (!deployed->address) return deployed->address.error().with(name_of(deployed->node));
    } else if (const auto* wired = std::get_if<wired_event>(&*news)) {
      if (!wired->bound) return wired->bound.error();
    }
    others.push_back(std::move(*news));
  }
  return first;
}

result<std::vector<request_id>> cluster::submit(std::vector<session::generation_request> requests) {
  result<std::vector<request_id>> out;
  const caf::scoped_actor self{*system_};
  // SHARED: by the submit message only.
  const auto shared =
      std::make_shared<const std::vector<session::generation_request>>(std::move(requests));
  self->request(local_.at(plan_->client().id)->scheduler(), plan_->deadlines().step,
                actors::submit_atom::value, shared)
      .receive([&](const actors::request_ids_ref& ids) { out = *ids; },
               [&](const caf::error& what) { out = fail(actors::from_caf(*system_, what)); });
  return out;
}

void cluster::give_up(const error& why) {
  caf::anon_send(
      local_.at(plan_->client().id)->scheduler(), actors::fail_atom::value,
      actors::fault_ref(std::make_shared<const actors::fault>(actors::fault{"client", why})));
}

result<void> cluster::take(event& news, const session::generation_sink& sink,
                           progress_of_requests& requests) {
  if (auto* rows = std::get_if<rows_event>(&news)) {
    for (const session::row_event& row : rows->events)
      if (const auto found = requests.index_of.find(row.request);
          found != requests.index_of.end() && sink.on_row)
        sink.on_row(found->second, row);
  } else if (auto* tap = std::get_if<flow::tap>(&news)) {
    if (sink.on_tap) sink.on_tap(std::move(*tap));
  } else if (const auto* finished = std::get_if<finished_event>(&news)) {
    requests.used[requests.index_of.at(finished->request)] = finished->used;
    --requests.unfinished;
  } else if (const auto* lost = std::get_if<lost_event>(&news)) {
    return fail(describe_loss(*lost));
  } else if (const auto* what = std::get_if<actors::fault>(&news)) {
    return fail(root_cause(what->what.with(what->where)));
  } else if (const auto* refused = std::get_if<refused_event>(&news)) {
    note_refusal(*refused);
  } else if (std::holds_alternative<interrupted_event>(news)) {
    return fail(errc::cancelled, "interrupted");
  }
  return {};
}

result<void> cluster::submit_some(const std::vector<session::generation_request>& requests,
                                  progress_of_requests& running) {
  const std::size_t finished = requests.size() - running.unfinished;
  // As many waiting as running: the scheduler finds the next one before it hears of it here.
  const std::size_t until =
      std::min(requests.size(), finished + 2 * std::size_t{plan_->limits().requests});
  if (running.submitted >= until) return {};
  const auto ids = submit({requests.data() + running.submitted, requests.data() + until});
  if (!ids) return fail(ids.error());
  for (const request_id id : *ids) running.index_of.emplace(id, running.submitted++);
  return {};
}

result<std::vector<session::usage>> cluster::generate(
    const std::vector<session::generation_request>& requests,
    const session::generation_sink& sink) {
  if (failure_) return fail(*failure_);
  // All are judged before any is run: a scheduler of no pipeline says what is wrong with them.
  session::scheduler_limits limits = scheduler_limits_of(*plan_, model_->config());
  limits.queue_max = static_cast<std::uint32_t>(requests.size());
  if (const auto judged = session::step_scheduler(limits).submit(requests); !judged)
    return fail(judged.error());
  progress_of_requests running;
  running.used.resize(requests.size());
  running.unfinished = requests.size();

  const auto limit = plan_->deadlines().step * 2;
  result<void> taken;
  while (taken && running.unfinished > 0) {
    taken = submit_some(requests, running);
    if (!taken) break;
    auto news = events_.pop(limit);
    taken = news ? take(*news, sink, running)
                 : fail(errc::timeout, "the pipeline said nothing about " +
                                           request_count(running.unfinished) + " for " +
                                           std::to_string(limit.count()) + " ms");
  }
  if (taken) return std::move(running.used);
  failure_ = taken.error();
  give_up(*failure_);
  return fail(taken.error());
}

void cluster::interrupt() {
  events_.push(interrupted_event{});
}

std::vector<node_report> cluster::reports() {
  std::vector<node_report> all;
  for (auto& [id, runtime] : local_) all.push_back(runtime->report());
  const caf::scoped_actor self{*system_};
  for (const auto& [id, agent] : agents_)
    self->request(agent, plan_->deadlines().drain, report_atom::value)
        .receive([&](node_report& report) { all.push_back(std::move(report)); },
                 [](const caf::error&) {});
  return all;
}

void cluster::stop_agents(wait_clock::time_point until) {
  if (agents_.empty()) return;
  const caf::scoped_actor self{*system_};
  std::size_t awaited = 0;
  for (const auto& [id, agent] : agents_) {
    if (!children_.contains(id) && !lost_.contains(id)) {
      self->monitor(agent);
      ++awaited;
    }
    self->send(agent, stop_atom::value);
  }
  while (awaited > 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::max(until - wait_clock::now(), wait_clock::duration::zero()));
    self->receive([&](const caf::down_msg&) { --awaited; },
                  caf::after(left) >> [&] { awaited = 0; });
  }
}

void cluster::stop() {
  if (std::exchange(stopped_, true)) return;
  for (const caf::actor& asker : askers_)
    caf::anon_send_exit(asker, caf::exit_reason::user_shutdown);
  askers_.clear();
  const auto until =
      wait_clock::now() + (ready_ && !failure_ ? plan_->deadlines().drain : brief_drain);
  stop_agents(until);
  for (auto& [id, child] : children_) {
    // Who never joined, or is lost, does not hear that it is to stop.
    if (!agents_.contains(id) || lost_.contains(id)) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - wait_clock::now());
    child.wait(std::max(left, std::chrono::milliseconds(0)));
  }
  children_.clear();  // kills and reaps what is left
  agents_.clear();
  local_.clear();
  if (controller_) caf::anon_send_exit(controller_, caf::exit_reason::user_shutdown);
  controller_ = nullptr;
}

}  // namespace cedar::topology
