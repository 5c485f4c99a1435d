// A started cluster as a service: requests come from any thread at any time, and failures pass.
//
// 1. One thread takes the cluster's news and calls the events; it sleeps while there is none.
// 2. A node that is lost, or a fault, ends the requests that the pipeline held state of, with an
//    error that names it. Requests that only waited go on waiting; new ones are refused, with the
//    same text, until the pipeline has come back: attempts follow each other, with pauses that grow
//    from none to 10 s and begin anew after a minute without a failure.
// 3. An interruption ends all requests, and those to come, for good.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "runtime/session/service_requests.hpp"
#include "topology/launch/cluster.hpp"

namespace cedar::topology {

class cluster_service final : public session::generation_service {
 public:
  /// `pipeline` has started, outlives the service, and generates nothing else meanwhile.
  explicit cluster_service(cluster& pipeline);
  /// Ends all requests with errc::cancelled.
  ~cluster_service() override;

  session::service_limits limits() const override;
  request_id submit(session::generation_request request, session::request_events events) override;
  void cancel(request_id request) override;
  session::service_status status() const override;

 private:
  using clock = std::chrono::steady_clock;

  void run();
  void take(cluster::event& news);
  void take_trouble(cluster::event& news);
  void start(cluster::submit_event& order);
  void cancel_now(request_id ticket);
  void fail_requests(const cluster::failed_event& failed);
  /// The root of a trouble that showed somewhere.
  error root_cause(error first);
  void lose(const error& why);
  /// In each direction, as the start found them.
  std::vector<session::link_status> measured_links() const;
  void come_back();
  /// Takes news meanwhile.
  void pause(clock::duration length);
  bool over() const noexcept { return ended_ || interrupted_; }
  void show(std::optional<error> failure);
  /// Asks the nodes what passed their edges and what their units hold: now and then while requests
  /// run, and after that until nobody holds anything of a request.
  void look_at_usage(bool idle);
  bool settling() const;
  std::chrono::milliseconds wait_of(bool idle) const;
  void take_usage(const cluster::usage_event& news);
  void say(const std::string& what) const;

  cluster& cluster_;
  mutable std::mutex mutex_;
  std::uint64_t next_ticket_ = 1;  ///< guarded by mutex_
  std::optional<error> failure_;  ///< guarded by mutex_; written by the thread only
  std::set<node_id> down_;  ///< guarded by mutex_
  std::map<node_id, std::uint64_t> losses_;  ///< guarded by mutex_
  std::map<std::pair<node_id, node_id>, std::uint64_t> link_losses_;  ///< guarded by mutex_
  std::uint64_t recoveries_ = 0;  ///< guarded by mutex_
  std::map<std::string, session::edge_status> edges_;  ///< guarded by mutex_
  std::map<std::string, cache_bytes> caches_;  ///< by unit; guarded by mutex_
  std::map<std::string, engram_counts> engram_;  ///< likewise

  // Of the thread.
  session::service_requests requests_;
  std::map<std::string, edge_report> edges_before_;  ///< as the nodes counted them last
  std::map<std::string, engram_counts> engram_before_;  ///< likewise
  clock::time_point looked_;
  clock::time_point busy_;  ///< when a request ran last
  bool idle_ = false;
  bool held_ = false;  ///< by caches_, of some request
  bool ended_ = false;
  bool interrupted_ = false;
  std::chrono::milliseconds backoff_{0};
  clock::time_point healthy_since_ = clock::now();
  std::thread thread_;
};

}  // namespace cedar::topology
