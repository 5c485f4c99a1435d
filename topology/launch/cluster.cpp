#include "topology/launch/cluster.hpp"

#include <algorithm>

#include "actors/error_bridge.hpp"

namespace cedar::topology {

namespace {

/// How long a better reason, or a child's end, is waited for.
constexpr std::chrono::milliseconds reason_wait{50};
/// Longest wait for nodes to end by themselves when something has gone wrong.
constexpr std::chrono::milliseconds brief_drain{300};
/// Longest wait for what a node says of its edges and units.
constexpr std::chrono::seconds usage_limit{1};

using wait_clock = std::chrono::steady_clock;

std::string request_count(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " request" : " requests");
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

error cluster::root_cause(error first) {
  std::vector<event> others;
  error why = root_cause(std::move(first), others);
  if (!others_) return why;
  // What else went wrong is seen by the next attempt.
  for (event& other : others) static_cast<void>(note(other));
  return why;
}

error cluster::root_cause(error first, std::vector<event>& others) {
  const auto until = wait_clock::now() + reason_wait;
  while (auto news = events_.pop(std::chrono::duration_cast<std::chrono::milliseconds>(
             std::max(until - wait_clock::now(), wait_clock::duration::zero())))) {
    if (is_stale(*news)) continue;
    if (const auto* lost = std::get_if<lost_event>(&*news)) {
      return describe_loss(*lost);
    } else if (const auto* deployed = std::get_if<deployed_event>(&*news)) {
      if (!deployed->address) return deployed->address.error().with(name_of(deployed->node));
    } else if (const auto* wired = std::get_if<wired_event>(&*news)) {
      if (!wired->bound) return wired->bound.error().with(name_of(wired->node));
    }
    others.push_back(std::move(*news));
  }
  return first;
}

std::string cluster::units_of(node_id node) const {
  std::string units;
  for (const unit_id id : (*plan_)[node].units) {
    const unit_plan& unit = (*plan_)[id];
    units += units.empty() ? "" : ", ";
    if (const auto* stage = std::get_if<stage_role>(&unit.role))
      units += "stage '" + unit.name + "' layers " + std::to_string(stage->layers.first) + "-" +
               std::to_string(stage->layers.last);
    else if (std::holds_alternative<experts_role>(unit.role))
      units += "experts '" + unit.name + "'";
    else if (std::holds_alternative<indexer_role>(unit.role))
      units += "indexer '" + unit.name + "'";
    else if (const auto* engram = std::get_if<engram_role>(&unit.role); engram && engram->in_parts)
      units += "tables '" + unit.name + "'";
    else
      units += unit.name;
  }
  return units.empty() ? "no unit" : units;
}

void cluster::lose(node_id node) {
  if (lost_.insert(node).second) ++losses_[node];
}

/// "lost node 'back' (stage 'decoder' layers 6-11, head): connection reset; its process: signal 9".
error cluster::describe_loss(const lost_event& lost) {
  lose(lost.node);
  error out = lost.reason.with("lost " + name_of(lost.node) + " (" + units_of(lost.node) + ")");
  const auto child = children_.find(lost.node);
  if (child != children_.end() && child->second.wait(reason_wait))
    out.message += "; its process: " + *child->second.ended();
  return out;
}

/// "node 'front' lost node 'back' (stage 'decoder' layers 6-11, head): no heartbeat ...". Both ends
/// of a link tell.
error cluster::describe_cut(const cut_event& cut) {
  const std::pair<node_id, node_id> ends = std::minmax(cut.node, cut.peer);
  if (cuts_.insert(ends).second) ++link_losses_[ends];
  return cut.reason.with(name_of(cut.node) + " lost " + name_of(cut.peer) + " (" +
                         units_of(cut.peer) + ")");
}

actors::scheduler_listener cluster::listener() {
  return {[this](const flow::proposal& proposal, const std::vector<session::row_event>& events) {
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
          [this](const std::vector<request_id>& requests, const actors::fault& what) {
            events_.push(failed_event{requests, what});
          },
          [this](const session::measured_costs& costs) { events_.push(costs_event{costs}); }};
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
  } else if (const auto* cut = std::get_if<cut_event>(&news)) {
    return fail(root_cause(describe_cut(*cut)));
  } else if (const auto* failed = std::get_if<failed_event>(&news)) {
    return fail(root_cause(failed->why.what.with(failed->why.where)));
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
    taken =
        news ? take(*news, sink, running)
             : fail(errc::timeout,
                    "the pipeline said nothing about " + request_count(running.unfinished) +
                        " for " + std::to_string(limit.count()) + " ms (twice deadlines_ms.step)");
  }
  if (taken) return std::move(running.used);
  failure_ = taken.error();
  give_up(*failure_);
  return fail(taken.error());
}

void cluster::interrupt() {
  events_.push(interrupted_event{});
}

void cluster::ask_for_usage() {
  for (const auto& [id, runtime] : local_) events_.push(usage_event{id, runtime->usage()});
  // Not kept as askers: these come and go all the time, and nobody waits for them.
  for (const auto& [id, agent] : agents_)
    system_->spawn([this, node = id, to = agent](caf::event_based_actor* self) {
      self->request(to, usage_limit, usage_atom::value)
          .then(
              [this, node](const node_usage& usage) {
                events_.push(usage_event{node, usage});
              },
              [](const caf::error&) {});
    });
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
