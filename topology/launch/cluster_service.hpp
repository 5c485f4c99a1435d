// A started cluster as a service: requests come from any thread at any time.
//
// 1. One thread takes the cluster's news and calls the events; it sleeps while there is none.
// 2. A node that is lost, a fault or an interruption ends all requests, and those to come, with
//    that error. status() names the lost node's units.
#pragma once

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
  void run();
  /// One piece of news; false: the end.
  bool take(cluster::event& news);
  void start(cluster::submit_event& order);
  void cancel_now(request_id ticket);
  void lose(const error& why);

  cluster& cluster_;
  mutable std::mutex mutex_;
  std::uint64_t next_ticket_ = 1;  ///< guarded by mutex_
  std::optional<error> failure_;  ///< guarded by mutex_
  std::set<node_id> lost_;  ///< guarded by mutex_

  session::service_requests requests_;  ///< of the thread
  std::thread thread_;
};

}  // namespace cedar::topology
