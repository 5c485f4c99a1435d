#include "topology/launch/cluster_service.hpp"

#include <algorithm>
#include <utility>

namespace cedar::topology {

namespace {

using namespace std::chrono_literals;

/// Between two looks at edges and caches while requests run.
constexpr std::chrono::seconds usage_interval{1};
/// And after that, while somebody has not heard of their end; but no longer than so long.
constexpr std::chrono::milliseconds settling_interval = 100ms;
constexpr std::chrono::seconds settling_time{5};
/// Between two looks at nothing.
constexpr std::chrono::hours idle_wait{1};
/// Between attempts to come back: none before the first, then these, doubled each time.
constexpr std::chrono::milliseconds backoff_min = 100ms;
constexpr std::chrono::milliseconds backoff_max = 10s;
/// After so long without a failure the next one is a first one again.
constexpr std::chrono::seconds healthy_time = 60s;

/// No losses yet of nodes that exchange messages, but for the client.
std::map<std::pair<node_id, node_id>, std::uint64_t> links_of(const plan& topology) {
  std::map<std::pair<node_id, node_id>, std::uint64_t> out;
  const node_id client = topology.client().id;
  for (const node_plan& one : topology.nodes())
    for (const node_plan& other : topology.nodes())
      if (one.id < other.id && one.id != client && other.id != client &&
          topology.traffic(one.id, other.id).messages +
                  topology.traffic(other.id, one.id).messages >
              0)
        out[{one.id, other.id}] = 0;
  return out;
}

std::string milliseconds_since(std::chrono::steady_clock::time_point begin) {
  const auto passed = std::chrono::steady_clock::now() - begin;
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(passed).count()) +
         " ms";
}

}  // namespace

cluster_service::cluster_service(cluster& pipeline)
    : cluster_(pipeline), link_losses_(links_of(*pipeline.plan_)), thread_([this] { run(); }) {}

cluster_service::~cluster_service() {
  cluster_.events_.push(cluster::end_event{});
  thread_.join();
}

session::service_limits cluster_service::limits() const {
  return session::service_limits_of(
      scheduler_limits_of(*cluster_.plan_, cluster_.model_->config()));
}

request_id cluster_service::submit(session::generation_request request,
                                   session::request_events events) {
  request_id ticket;
  {
    const std::scoped_lock lock(mutex_);
    ticket.value = next_ticket_++;
  }
  cluster_.events_.push(cluster::submit_event{ticket, std::move(request), std::move(events)});
  return ticket;
}

void cluster_service::cancel(request_id request) {
  cluster_.events_.push(cluster::cancel_event{request});
}

std::vector<session::link_status> cluster_service::measured_links() const {
  std::vector<session::link_status> out;
  for (const measured_link& link : cluster_.links()) {
    const std::string& from = (*cluster_.plan_)[link.from].name;
    const std::string& to = (*cluster_.plan_)[link.to].name;
    const link_rate rate = link.found.rates.empty() ? link_rate{} : link.found.rates.back();
    const double round_trip = std::chrono::duration<double>(link.found.round_trip).count();
    out.push_back({from, to, round_trip, rate.there});
    out.push_back({to, from, round_trip, rate.back});
  }
  return out;
}

session::service_status cluster_service::status() const {
  session::service_status out;
  {
    const std::scoped_lock lock(cluster_.load_mutex_);
    out.load = cluster_.load_;
  }
  const std::scoped_lock lock(mutex_);
  if (failure_) out.problem = failure_->message;
  for (const node_plan& node : cluster_.plan_->nodes())
    for (const unit_id unit : node.units) {
      const std::string& name = (*cluster_.plan_)[unit].name;
      const auto held = caches_.find(name);
      const auto counts = engram_.find(name);
      const bool up = !down_.contains(node.id);
      out.units.push_back({name, node.name, up,
                           up && held != caches_.end() ? held->second : cache_bytes{},
                           counts != engram_.end() ? counts->second : engram_counts{}});
    }
  out.recoveries = recoveries_;
  for (const auto& [name, edge] : edges_) out.edges.push_back(edge);
  out.kv_positions_max = limits().kv_positions_max;
  out.links = measured_links();
  for (const node_plan& node : cluster_.plan_->nodes()) {
    const auto lost = losses_.find(node.id);
    out.node_losses[node.name] = lost == losses_.end() ? 0 : lost->second;
  }
  for (const auto& [ends, losses] : link_losses_)
    out.link_losses[{(*cluster_.plan_)[ends.first].name, (*cluster_.plan_)[ends.second].name}] =
        losses;
  return out;
}

void cluster_service::say(const std::string& what) const {
  if (cluster_.options_.on_notice) cluster_.options_.on_notice(what);
}

/// What status() shows from now on. Units of lost nodes are down until all is well again.
void cluster_service::show(std::optional<error> failure) {
  const std::scoped_lock lock(mutex_);
  if (!failure) down_.clear();
  down_.insert(cluster_.lost_.begin(), cluster_.lost_.end());
  losses_ = cluster_.losses_;
  for (const auto& [ends, losses] : cluster_.link_losses_) link_losses_[ends] = losses;
  failure_ = std::move(failure);
}

void cluster_service::look_at_usage(bool idle) {
  const auto now = clock::now();
  if (!idle) busy_ = now;
  const bool just_idle = idle && !std::exchange(idle_, idle);
  idle_ = idle;
  if (!just_idle && now - looked_ < wait_of(idle)) return;
  looked_ = now;
  cluster_.ask_for_usage();
}

/// The last verdict may still be on its way.
bool cluster_service::settling() const {
  return held_ && clock::now() - busy_ < settling_time;
}

std::chrono::milliseconds cluster_service::wait_of(bool idle) const {
  if (!idle) return usage_interval;
  return settling() ? settling_interval : std::chrono::milliseconds(idle_wait);
}

/// A node that was started again counts from nothing.
void cluster_service::take_usage(const cluster::usage_event& news) {
  const std::scoped_lock lock(mutex_);
  for (const cache_report& now : news.usage.caches)
    caches_[now.unit] = {now.pages, now.kept, now.rings};
  held_ = std::ranges::any_of(caches_, [](const auto& unit) { return unit.second.rings > 0; });
  for (const engram_report& report : news.usage.engram) {
    const engram_counts now{report.rows_sent, report.steps, report.late, report.waited_us};
    engram_counts& before = engram_before_[report.unit];
    if (now.rows_sent < before.rows_sent || now.steps < before.steps) before = {};
    engram_[report.unit] += now - before;
    before = now;
  }
  for (const edge_report& now : news.usage.edges) {
    edge_report& before = edges_before_[now.edge];
    if (now.messages < before.messages) before = {};
    session::edge_status& sum = edges_[now.edge];
    sum.edge = now.edge;
    sum.messages += now.messages - before.messages;
    sum.bytes += now.bytes - before.bytes;
    sum.waited_us += now.waited_us - before.waited_us;
    before = now;
  }
}

void cluster_service::lose(const error& why) {
  if (failure_) return show(failure_);
  show(why);
  say("the pipeline has failed: " + why.message);
  cluster_.failure_ = why;
  cluster_.give_up(why);
}

error cluster_service::root_cause(error first) {
  std::vector<cluster::event> others;
  error why = cluster_.root_cause(std::move(first), others);
  lose(why);
  for (cluster::event& other : others) take(other);
  return why;
}

void cluster_service::start(cluster::submit_event& order) {
  // Whatever it was that went wrong: this request has no part in it, and may come again.
  if (failure_)
    return order.events.on_failed(interrupted_ ? *failure_
                                               : error{errc::peer_lost, failure_->message});
  const auto ids = cluster_.submit({std::move(order.request)});
  if (!ids) return order.events.on_failed(ids.error());
  requests_.add(order.ticket, ids->front(), std::move(order.events));
}

void cluster_service::cancel_now(request_id ticket) {
  if (const auto running = requests_.cancel(ticket))
    caf::anon_send(cluster_.local_.at(cluster_.plan_->client().id)->scheduler(),
                   actors::cancel_atom::value, running->value);
}

void cluster_service::fail_requests(const cluster::failed_event& failed) {
  if (!failure_) root_cause(failed.why.what.with(failed.why.where));
  const error why = *failure_;
  for (const request_id id : failed.requests) requests_.failed(id, why);
}

/// What breaks the pipeline, if it is not known already.
void cluster_service::take_trouble(cluster::event& news) {
  if (cluster_.is_stale(news)) return;
  if (const auto* lost = std::get_if<cluster::lost_event>(&news)) {
    lose(cluster_.describe_loss(*lost));
  } else if (const auto* cut = std::get_if<cluster::cut_event>(&news)) {
    root_cause(cluster_.describe_cut(*cut));
  } else if (const auto* what = std::get_if<actors::fault>(&news)) {
    root_cause(what->what.with(what->where));
  } else if (const auto* left = std::get_if<cluster::left_event>(&news)) {
    const node_id node = cluster_.plan_->find_node(left->node)->id;
    lose(cluster_.describe_loss({node, {errc::peer_lost, "its control connection ended"}, {}}));
  }
}

void cluster_service::take(cluster::event& news) {
  if (auto* rows = std::get_if<cluster::rows_event>(&news)) {
    for (const session::row_event& row : rows->events) requests_.row(row);
  } else if (const auto* finished = std::get_if<cluster::finished_event>(&news)) {
    requests_.finished(finished->request, finished->used);
  } else if (const auto* failed = std::get_if<cluster::failed_event>(&news)) {
    fail_requests(*failed);
  } else if (auto* order = std::get_if<cluster::submit_event>(&news)) {
    start(*order);
  } else if (const auto* cancelled = std::get_if<cluster::cancel_event>(&news)) {
    cancel_now(cancelled->ticket);
  } else if (const auto* joined = std::get_if<cluster::joined_event>(&news)) {
    cluster_.note_joined(*joined);
  } else if (const auto* refused = std::get_if<cluster::refused_event>(&news)) {
    cluster_.note_refusal(*refused);
  } else if (const auto* usage = std::get_if<cluster::usage_event>(&news)) {
    take_usage(*usage);
  } else if (std::holds_alternative<cluster::interrupted_event>(news)) {
    interrupted_ = true;
    const error why{errc::cancelled, "interrupted"};
    lose(why);
    show(why);
    requests_.fail_all(why);
  } else if (std::holds_alternative<cluster::end_event>(news)) {
    ended_ = true;
  } else {
    take_trouble(news);
  }
}

void cluster_service::pause(clock::duration length) {
  const auto until = clock::now() + length;
  while (!over() && clock::now() < until)
    if (auto news = cluster_.events_.pop(
            std::chrono::ceil<std::chrono::milliseconds>(until - clock::now())))
      take(*news);
}

void cluster_service::come_back() {
  const auto begin = clock::now();
  const error first = *failure_;
  if (begin - healthy_since_ >= healthy_time) backoff_ = 0ms;
  while (true) {
    pause(backoff_);
    if (over()) return;
    backoff_ = std::clamp(2 * backoff_, backoff_min, backoff_max);
    say("bringing the pipeline back");
    const result<void> back = cluster_.recover([this](cluster::event& news) { take(news); });
    if (over()) return;
    if (back) break;
    show(error{first.code, first.message + "; not back yet: " + back.error().message});
    say("the pipeline is not back yet: " + back.error().message);
  }
  cluster_.resume();
  healthy_since_ = clock::now();
  show(std::nullopt);
  {
    const std::scoped_lock lock(mutex_);
    ++recoveries_;
  }
  say("serving again after " + milliseconds_since(begin));
}

void cluster_service::run() {
  const auto limit = cluster_.plan_->deadlines().step * 2;
  auto heard = clock::now();  // of anything but usage
  while (!ended_) {
    if (failure_ && !interrupted_) {
      come_back();
      heard = clock::now();
      continue;
    }
    const bool idle = requests_.size() == 0 || interrupted_;
    look_at_usage(idle);
    auto news = cluster_.events_.pop(wait_of(idle));
    if (news) take(*news);
    if (idle || (news && !std::holds_alternative<cluster::usage_event>(*news)))
      heard = clock::now();
    else if (clock::now() - heard >= limit)
      lose({errc::timeout, "the pipeline said nothing for " + std::to_string(limit.count()) +
                               " ms (twice deadlines_ms.step) while requests ran"});
  }
  const error ended{errc::cancelled, "the server is stopping"};
  requests_.fail_all(ended);
  while (auto late = cluster_.events_.pop(0ms))
    if (const auto* order = std::get_if<cluster::submit_event>(&*late))
      order->events.on_failed(ended);
}

}  // namespace cedar::topology
