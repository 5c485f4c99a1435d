#include "topology/launch/cluster_service.hpp"

namespace cedar::topology {

namespace {

/// Between two looks at nothing.
constexpr std::chrono::hours idle_wait{1};

}  // namespace

cluster_service::cluster_service(cluster& pipeline)
    : cluster_(pipeline), thread_([this] { run(); }) {}

cluster_service::~cluster_service() {
  cluster_.events_.push(cluster::end_event{});
  thread_.join();
}

session::service_limits cluster_service::limits() const {
  const auto limits = scheduler_limits_of(*cluster_.plan_, cluster_.model_->config());
  return {limits.context_max, limits.vocabulary, limits.eos_token};
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

session::service_status cluster_service::status() const {
  session::service_status out;
  {
    const std::scoped_lock lock(cluster_.load_mutex_);
    out.load = cluster_.load_;
  }
  const std::scoped_lock lock(mutex_);
  if (failure_) out.problem = failure_->message;
  for (const node_plan& node : cluster_.plan_->nodes())
    for (const unit_id unit : node.units)
      out.units.push_back({(*cluster_.plan_)[unit].name, node.name, !lost_.contains(node.id)});
  return out;
}

void cluster_service::lose(const error& why) {
  {
    const std::scoped_lock lock(mutex_);
    lost_ = cluster_.lost_;
    if (failure_) return;
    failure_ = why;
  }
  cluster_.failure_ = why;
  cluster_.give_up(why);
  requests_.fail_all(why);
}

void cluster_service::start(cluster::submit_event& order) {
  if (failure_) return order.events.on_failed(*failure_);
  const auto ids = cluster_.submit({std::move(order.request)});
  if (!ids) return order.events.on_failed(ids.error());
  requests_.add(order.ticket, ids->front(), std::move(order.events));
}

void cluster_service::cancel_now(request_id ticket) {
  if (const auto running = requests_.cancel(ticket))
    caf::anon_send(cluster_.local_.at(cluster_.plan_->client().id)->scheduler(),
                   actors::cancel_atom::value, running->value);
}

bool cluster_service::take(cluster::event& news) {
  if (auto* rows = std::get_if<cluster::rows_event>(&news)) {
    for (const session::row_event& row : rows->events) requests_.row(row);
  } else if (const auto* finished = std::get_if<cluster::finished_event>(&news)) {
    requests_.finished(finished->request, finished->used);
  } else if (auto* order = std::get_if<cluster::submit_event>(&news)) {
    start(*order);
  } else if (const auto* cancelled = std::get_if<cluster::cancel_event>(&news)) {
    cancel_now(cancelled->ticket);
  } else if (const auto* lost = std::get_if<cluster::lost_event>(&news)) {
    lose(cluster_.describe_loss(*lost));
  } else if (const auto* what = std::get_if<actors::fault>(&news)) {
    std::vector<cluster::event> others;
    lose(cluster_.root_cause(what->what.with(what->where), others));
    for (cluster::event& other : others)
      if (!take(other)) return false;
  } else if (const auto* refused = std::get_if<cluster::refused_event>(&news)) {
    cluster_.note_refusal(*refused);
  } else if (std::holds_alternative<cluster::interrupted_event>(news)) {
    lose({errc::cancelled, "interrupted"});
  } else if (std::holds_alternative<cluster::end_event>(news)) {
    return false;
  }
  return true;
}

void cluster_service::run() {
  const auto limit = cluster_.plan_->deadlines().step * 2;
  bool goes_on = true;
  while (goes_on) {
    const bool idle = requests_.size() == 0;
    auto news = cluster_.events_.pop(idle ? std::chrono::milliseconds(idle_wait) : limit);
    if (news)
      goes_on = take(*news);
    else if (!idle)
      lose({errc::timeout, "the pipeline said nothing for " + std::to_string(limit.count()) +
                               " ms while requests ran"});
  }
  const error ended{errc::cancelled, "the server is stopping"};
  requests_.fail_all(ended);
  while (auto late = cluster_.events_.pop(std::chrono::milliseconds(0)))
    if (const auto* order = std::get_if<cluster::submit_event>(&*late))
      order->events.on_failed(ended);
}

}  // namespace cedar::topology
