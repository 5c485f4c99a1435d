// How a pipeline that failed comes back without restarting what still works.
//
// An attempt gives up what is broken, waits until nobody is connected to it any more, starts its
// successors, and wires everything anew in the next epoch. It ends with the first thing that goes
// wrong; the next one begins with what is broken then.
#include <algorithm>

#include "topology/launch/cluster.hpp"

namespace cedar::topology {

namespace {

/// How often a wait for a person looks whether a child has ended.
constexpr std::chrono::milliseconds look_again_after{50};

using wait_clock = std::chrono::steady_clock;

}  // namespace

bool cluster::is_stale(const event& news) const {
  if (const auto* lost = std::get_if<lost_event>(&news)) {
    const auto back = back_since_.find(lost->node);
    return lost_.contains(lost->node) || former_.contains(lost->node) ||
           (back != back_since_.end() && lost->epoch < back->second);
  }
  if (const auto* left = std::get_if<left_event>(&news)) {
    const auto agent = agents_.find(plan_->find_node(left->node)->id);
    return agent == agents_.end() || agent->second.address() != left->agent;
  }
  if (const auto* cut = std::get_if<cut_event>(&news)) return cut->epoch < epoch_;
  if (const auto* what = std::get_if<actors::fault>(&news)) return what->epoch < epoch_;
  if (const auto* deployed = std::get_if<deployed_event>(&news)) return deployed->epoch < epoch_;
  if (const auto* parted = std::get_if<parted_event>(&news)) return parted->epoch < epoch_;
  if (const auto* wired = std::get_if<wired_event>(&news)) return wired->epoch < epoch_;
  if (const auto* found = std::get_if<link_event>(&news)) return found->epoch < epoch_;
  return false;
}

std::set<node_id> cluster::find_broken() {
  for (auto& [id, child] : children_)
    if (child.ended()) lose(id);
  for (const node_id id : std::exchange(blamed_, {})) lose(id);
  return lost_;
}

/// Whatever state they are in: a stopped process is killed, a process of another host is told to
/// end, if it hears it.
void cluster::abandon(const std::set<node_id>& broken) {
  const caf::scoped_actor self{*system_};
  for (const node_id id : broken) {
    children_.erase(id);  // kills and reaps
    if (const auto agent = agents_.find(id); agent != agents_.end()) {
      self->send(agent->second, dismiss_atom::value);
      self->send(controller_, forget_atom::value, agent->second.address());
      agents_.erase(agent);
    }
    joined_.erase(id);
    deployed_.erase(id);
    former_.insert(id);
  }
}

/// Before anybody connects to a successor: else it would be taken for the one that was lost.
result<void> cluster::part_from_former() {
  const auto former_of = [&](node_id node) {
    std::set<node_id> peers = former_;
    for (const auto& [one, other] : cuts_)
      if (one == node || other == node) peers.insert(one == node ? other : one);
    peers.erase(node);
    return std::vector<node_id>(peers.begin(), peers.end());
  };
  parted_.clear();
  for (const node_plan& node : plan_->nodes()) {
    if (agents_.contains(node.id) && !former_.contains(node.id)) {
      ask_to_part(node.id, former_of(node.id));
      continue;
    }
    if (const auto here = local_.find(node.id); here != local_.end())
      if (const auto parted = here->second->part(former_of(node.id), epoch_); !parted)
        return parted;
    parted_.insert(node.id);
  }
  if (const result<void> parted = await(parted_, "drop its connections"); !parted) return parted;
  for (const node_id node : former_) back_since_[node] = epoch_;
  left_ = std::exchange(former_, {});
  cuts_.clear();
  return {};
}

/// People may take their time.
result<void> cluster::await_joining(const std::set<node_id>& nodes) {
  while (!std::ranges::includes(joined_, nodes)) {
    if (auto ended = ended_child()) return fail(std::move(*ended));
    auto news = events_.pop(look_again_after);
    if (!news) continue;
    if (const result<void> noted = note(*news); !noted) return noted;
  }
  return {};
}

/// Processes of this host last: they do not wait for long.
result<void> cluster::restart(const std::set<node_id>& broken) {
  std::set<node_id> elsewhere;
  for (const node_plan& node : plan_->nodes()) {
    if (node.start != node_start::join || joined_.contains(node.id)) continue;
    elsewhere.insert(node.id);
    if (broken.contains(node.id)) announce(node);
  }
  if (const result<void> joined = await_joining(elsewhere); !joined) return joined;
  start_limit_ = wait_clock::now() + plan_->deadlines().start;
  for (const node_plan& node : plan_->nodes()) {
    if (joined_.contains(node.id) || children_.contains(node.id)) continue;
    if (const result<void> restored = secret_->restore(); !restored) return restored;
    if (const result<void> spawned = spawn(node); !spawned) return spawned;
  }
  const result<void> joined = await(joined_, "join");
  if (joined && secret_) secret_->remove();
  return joined;
}

result<void> cluster::recover(const std::function<void(event&)>& others) {
  others_ = others;
  ++epoch_.value;
  start_limit_ = wait_clock::now() + plan_->deadlines().start;
  for (const caf::actor& asker : askers_)
    caf::anon_send_exit(asker, caf::exit_reason::user_shutdown);
  askers_.clear();
  const std::set<node_id> broken = find_broken();
  abandon(broken);
  result<void> done = part_from_former();
  if (done) done = restart(broken);
  if (done) done = deploy_all();
  // A unit that computes answers when it is ready.
  start_limit_ = wait_clock::now() + plan_->deadlines().start + plan_->deadlines().step;
  if (done) done = wire_all();
  others_ = nullptr;
  return done;
}

void cluster::resume() {
  failure_.reset();
  caf::anon_send(local_.at(plan_->client().id)->scheduler(), actors::resume_atom::value);
}

}  // namespace cedar::topology
