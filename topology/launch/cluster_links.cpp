// How a cluster's links are measured when its nodes are connected, and held against the file.
//
// One after the other: on one host, or in one network, measurements at a time would make each other
// slower than the links are.
#include <thread>

#include "topology/launch/cluster.hpp"

namespace cedar::topology {

namespace {

/// How often a wait looks whether a child has ended.
constexpr std::chrono::milliseconds end_look_interval{50};

bool exchange_messages(const plan& topology, node_id one, node_id other) {
  return topology.traffic(one, other).messages > 0 || topology.traffic(other, one).messages > 0;
}

}  // namespace

result<void> cluster::measure_links() {
  for (const node_plan& one : plan_->nodes())
    for (const node_plan& other : plan_->nodes())
      if (one.id < other.id && exchange_messages(*plan_, one.id, other.id))
        if (const result<void> done = measure_link(one.id, other.id); !done) return done;
  return judge_links();
}

/// The client measures its own links itself.
result<void> cluster::measure_link(node_id from, node_id to) {
  if (local_.contains(to)) std::swap(from, to);
  link_measured_.reset();
  std::jthread measuring;
  const auto here = local_.find(from);
  if (here == local_.end())
    ask_to_measure(from, to);
  else
    measuring = std::jthread(
        [this, from, to, runtime = here->second.get(), until = start_limit_, epoch = epoch_] {
          events_.push(link_event{from, runtime->measure(to, until), epoch});
        });
  const result<void> done = await_measurement(from, to);
  if (!done && here != local_.end()) here->second->give_up_measuring();
  return done;
}

result<void> cluster::await_measurement(node_id from, node_id to) {
  while (!link_measured_) {
    if (auto ended = ended_child()) return fail(std::move(*ended));
    if (std::chrono::steady_clock::now() >= start_limit_)
      return fail(errc::timeout, name_of(from) + " did not measure its link to " + name_of(to) +
                                     " within " + std::to_string(plan_->deadlines().start.count()) +
                                     " ms (deadlines_ms.start)");
    auto news = events_.pop(end_look_interval);
    if (!news) continue;
    if (const result<void> noted = note(*news); !noted) return noted;
  }
  if (!*link_measured_)
    return fail(root_cause(
        link_measured_->error().with(name_of(from) + " measuring its link to " + name_of(to))));
  links_.push_back({from, to, std::move(**link_measured_)});
  return {};
}

result<void> cluster::judge_links() const {
  std::string refused;
  for (const measured_link& link : links_) {
    progress("link " + to_string(*plan_, link));
    const auto slower = slower_than_claimed(*plan_, link);
    if (!slower) continue;
    if (plan_->strict_links())
      refused += (refused.empty() ? "" : "\n  ") + *slower;
    else if (options_.on_notice)
      options_.on_notice(*slower);
  }
  if (!refused.empty()) return fail(errc::refused, refused + " (strict_links)");
  return {};
}

}  // namespace cedar::topology
