#include "topology/launch/cluster.hpp"

#include <unistd.h>

#include <algorithm>
#include <caf/io/all.hpp>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>

#include "actors/error_bridge.hpp"

namespace cedar::topology {

namespace {

/// How often a wait looks whether a child has ended.
constexpr std::chrono::milliseconds look_interval{50};
/// Largest topology file.
constexpr std::uintmax_t topology_bytes_max = std::uintmax_t{1} << 20;

using wait_clock = std::chrono::steady_clock;

std::string request_count(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " request" : " requests");
}

}  // namespace

result<std::unique_ptr<cluster>> cluster::start(const cluster_options& options) {
  std::unique_ptr<cluster> made(new cluster(options));
  if (options.on_started) options.on_started(*made);
  if (const result<void> started = made->start_all(); !started) return fail(started.error());
  return made;
}

cluster::~cluster() {
  stop();
}

void cluster::progress(const std::string& what) const {
  if (options_.on_progress) options_.on_progress(what);
}

bool cluster::remote() const {
  return plan_->nodes().size() > 1 && plan_->transport().kind == transport_kind::ucx;
}

result<void> cluster::start_all() {
  if (const result<void> done = read_topology(); !done) return done;
  config_.emplace(remote());
  system_ = std::make_unique<caf::actor_system>(*config_);
  if (remote()) {
    if (const result<void> done = start_control(); !done) return done;
    if (const result<void> done = spawn_nodes(); !done) return done;
  }
  progress("loading");
  if (const result<void> done = open_local(); !done) return done;
  if (remote()) {
    if (const result<void> done = await_joins(); !done) return done;
    secret_->remove();
  }
  const auto addresses = deploy_all();
  if (!addresses) return fail(addresses.error());
  return wire_all(*addresses);
}

result<void> cluster::read_topology() {
  std::error_code unreadable;
  const auto size = std::filesystem::file_size(options_.topology, unreadable);
  if (unreadable || size > topology_bytes_max)
    return fail(errc::not_found, "topology " + options_.topology.string() + ": " +
                                     (unreadable ? unreadable.message() : "larger than 1 MiB"));
  std::ifstream file(options_.topology, std::ios::binary);
  text_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  auto document = parse_document(text_, options_.topology.string());
  if (!document) return fail(errc::malformed, to_string(document.error()));
  if (!options_.model.empty()) override_model(*document, options_.model);
  const std::filesystem::path folder = document->model_of(document->client.value);
  if (folder.empty())
    return fail(
        errc::invalid_argument,
        options_.topology.string() + " names no model; add model: {path: ...} or give -m DIR");
  auto model = stage::model_source::open(folder);
  if (!model) return fail(model.error());
  model_ = std::move(*model);
  auto planned = make_plan(*document, model_->config());
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
  settings.on_joined = [this](const std::string& node, const agent_actor& agent) {
    events_.push(joined_event{node, agent});
  };
  settings.on_fault = [this](const actors::fault& what) { events_.push(what); };
  controller_ = spawn_controller(*system_, std::move(settings));
  const auto port = system_->middleman().publish(controller_, 0, plan_->client().address.c_str());
  if (!port)
    return fail(actors::from_caf(*system_, port.error())
                    .with("control plane at " + plan_->client().address));
  control_port_ = *port;
  return {};
}

result<void> cluster::spawn_nodes() {
  for (const node_plan& node : plan_->nodes()) {
    if (node.id == plan_->client().id) continue;
    auto child = child_process::start(
        options_.program.string(),
        {"node", "--join", plan_->client().address + ":" + std::to_string(control_port_), "--name",
         node.name, "--secret-file", secret_->path().string(), "--parent",
         std::to_string(::getpid())});
    if (!child) return fail(child.error().with("node '" + node.name + "'"));
    progress("node '" + node.name + "' started as process " + std::to_string(child->pid()));
    children_.emplace(node.id, std::move(*child));
  }
  return {};
}

result<void> cluster::await_joins() {
  const auto until = wait_clock::now() + plan_->deadlines().start;
  while (agents_.size() + 1 < plan_->nodes().size()) {
    for (auto& [id, child] : children_)
      if (const auto how = child.ended())
        return fail(errc::peer_lost,
                    "node '" + (*plan_)[id].name + "' ended while starting: " + *how);
    if (wait_clock::now() >= until) {
      const auto missing = std::ranges::find_if(plan_->nodes(), [&](const node_plan& node) {
        return node.id != plan_->client().id && !agents_.contains(node.id);
      });
      return fail(errc::timeout, "node '" + missing->name + "' did not join within " +
                                     std::to_string(plan_->deadlines().start.count()) + " ms");
    }
    const auto news = events_.pop(look_interval);
    if (!news) continue;
    if (const auto* joined = std::get_if<joined_event>(&*news))
      agents_[plan_->find_node(joined->node)->id] = joined->agent;
    if (const auto* what = std::get_if<actors::fault>(&*news))
      return fail(what->what.with(what->where));
    if (std::holds_alternative<interrupted_event>(*news))
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
    events_.push(actors::fault{describe(peer), reason});
  };
  return settings;
}

/// "node 'back' (stage 'decoder' layers 6-11, head)".
std::string cluster::describe(node_id node) const {
  std::string units;
  for (const unit_id id : (*plan_)[node].units) {
    const unit_plan& unit = (*plan_)[id];
    units += units.empty() ? "" : ", ";
    if (const auto* stage = std::get_if<stage_role>(&unit.role))
      units += "stage '" + unit.name + "' layers " + std::to_string(stage->layers.first) + "-" +
               std::to_string(stage->layers.last);
    else
      units += unit.name;
  }
  return "lost node '" + (*plan_)[node].name + "' (" + units + ")";
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
      [this](const std::vector<request_id>&, const actors::fault& what) { events_.push(what); }};
}

result<void> cluster::open_local() {
  if (!remote() && plan_->nodes().size() > 1) hub_ = std::make_unique<transport::loopback_hub>();
  for (const node_plan& node : plan_->nodes()) {
    if (remote() && node.id != plan_->client().id) continue;
    auto runtime = node_runtime::open(*system_, *plan_, *model_, settings_of(node));
    if (!runtime) return fail(runtime.error());
    local_[node.id] = std::move(*runtime);
  }
  if (hub_) hub_->run();
  return {};
}

result<std::vector<std::string>> cluster::deploy_all() {
  std::vector<std::string> addresses(plan_->nodes().size());
  for (const auto& [id, runtime] : local_) addresses[id.value] = runtime->address();
  const std::string model =
      options_.model.empty() ? std::string{} : std::filesystem::absolute(options_.model).string();
  const deployment order{std::filesystem::absolute(options_.topology).string(), text_, model,
                         fingerprint_, options_.trace_events_max};
  const caf::scoped_actor self{*system_};
  using response = decltype(self->request(agent_actor{}, std::chrono::milliseconds(0),
                                          deploy_atom::value, order));
  std::vector<std::pair<node_id, response>> asked;
  for (const auto& [id, agent] : agents_)
    asked.emplace_back(id,
                       self->request(agent, plan_->deadlines().start, deploy_atom::value, order));
  result<void> deployed;
  for (auto& [id, answer] : asked)
    answer.receive(
        [&, node = id](std::string& address) { addresses[node.value] = address; },
        [&, node = id](const caf::error& what) {
          deployed =
              fail(actors::from_caf(*system_, what).with("node '" + (*plan_)[node].name + "'"));
        });
  if (!deployed) return fail(deployed.error());
  return addresses;
}

result<void> cluster::wire_all(const std::vector<std::string>& addresses) {
  const caf::scoped_actor self{*system_};
  using response = decltype(self->request(agent_actor{}, std::chrono::milliseconds(0),
                                          wire_atom::value, addresses));
  std::vector<std::pair<node_id, response>> asked;
  for (const auto& [id, agent] : agents_)
    asked.emplace_back(id,
                       self->request(agent, plan_->deadlines().start, wire_atom::value, addresses));
  // At the same time: each waits until the others have connected.
  result<void> wired;
  std::vector<std::thread> threads;
  std::mutex mutex;
  for (auto& [id, runtime] : local_)
    threads.emplace_back([&, node = runtime.get()] {
      const result<void> one = node->wire(addresses);
      const std::scoped_lock lock(mutex);
      if (!one && wired) wired = one;
    });
  for (std::thread& thread : threads) thread.join();
  for (auto& [id, answer] : asked)
    answer.receive(
        [](actors::bound_atom) {},
        [&, node = id](const caf::error& what) {
          if (wired)
            wired =
                fail(actors::from_caf(*system_, what).with("node '" + (*plan_)[node].name + "'"));
        });
  if (!wired) return wired;
  progress("ready");
  return {};
}

result<std::vector<session::usage>> cluster::generate(
    const std::vector<session::generation_request>& requests,
    const session::generation_sink& sink) {
  if (failure_) return fail(failure_->what.with(failure_->where));
  const actors::scheduler_actor& scheduler = local_.at(plan_->client().id)->scheduler();
  actors::request_ids_ref ids;
  result<void> submitted;
  const caf::scoped_actor self{*system_};
  self->request(scheduler, plan_->deadlines().step, actors::submit_atom::value,
                std::make_shared<const std::vector<session::generation_request>>(requests))
      .receive([&](const actors::request_ids_ref& given) { ids = given; },
               [&](const caf::error& what) { submitted = fail(actors::from_caf(*system_, what)); });
  if (!submitted) return fail(submitted.error());
  std::map<request_id, std::size_t> index_of;
  for (std::size_t i = 0; i < ids->size(); ++i) index_of.emplace((*ids)[i], i);

  std::vector<session::usage> used(requests.size());
  std::size_t unfinished = requests.size();
  while (unfinished > 0) {
    auto news = events_.pop(plan_->deadlines().step * 2);
    if (!news)
      return fail(errc::timeout, "the pipeline said nothing about " + request_count(unfinished) +
                                     " for " + std::to_string(plan_->deadlines().step.count() * 2) +
                                     " ms");
    if (auto* rows = std::get_if<rows_event>(&*news)) {
      for (const session::row_event& row : rows->events)
        if (const auto found = index_of.find(row.request); found != index_of.end() && sink.on_row)
          sink.on_row(found->second, row);
    } else if (auto* tap = std::get_if<flow::tap>(&*news)) {
      if (sink.on_tap) sink.on_tap(std::move(*tap));
    } else if (const auto* finished = std::get_if<finished_event>(&*news)) {
      used[index_of.at(finished->request)] = finished->used;
      --unfinished;
    } else if (const auto* what = std::get_if<actors::fault>(&*news)) {
      failure_ = *what;
      self->send(scheduler, actors::fail_atom::value,
                 actors::fault_ref(std::make_shared<const actors::fault>(*what)));
      return fail(what->what.with(what->where));
    } else if (std::holds_alternative<interrupted_event>(*news)) {
      return fail(errc::cancelled, "interrupted");
    }
  }
  return used;
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

void cluster::stop() {
  if (std::exchange(stopped_, true)) return;
  if (system_) {
    for (const auto& [id, agent] : agents_) caf::anon_send(agent, stop_atom::value);
    agents_.clear();
  }
  const auto until =
      wait_clock::now() + (plan_ && !failure_ ? plan_->deadlines().drain : look_interval);
  for (auto& [id, child] : children_) {
    const auto left = until - wait_clock::now();
    child.wait(std::max(std::chrono::duration_cast<std::chrono::milliseconds>(left),
                        std::chrono::milliseconds(0)));
  }
  children_.clear();  // kills and reaps what is left
  local_.clear();
  if (controller_) caf::anon_send_exit(controller_, caf::exit_reason::user_shutdown);
  controller_ = nullptr;
}

}  // namespace cedar::topology
