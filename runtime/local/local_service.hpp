// The local engine as a service: requests come from any thread at any time, and run together.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/local/local_engine.hpp"
#include "runtime/session/service_requests.hpp"

namespace cedar::local {

/// Runs the engine in a thread of its own, which sleeps while there is nothing to do, and which
/// calls the events. A step that fails, be it by a defect, ends the requests that the engine held
/// state of; it is renewed, and those that waited, and later ones, run. The destructor ends all
/// requests with errc::cancelled.
class local_service final : public session::generation_service {
 public:
  /// `engine` must outlive the service, and must be used by nobody else meanwhile. `queue_max`:
  /// requests that may wait.
  local_service(local_engine& engine, std::uint32_t queue_max);
  ~local_service() override;

  session::service_limits limits() const override;
  request_id submit(session::generation_request request, session::request_events events) override;
  void cancel(request_id request) override;
  session::service_status status() const override;
  /// Ends all requests, and those to come, with errc::cancelled, after the step that is being run.
  /// From any thread.
  void interrupt();

 private:
  struct submission {
    request_id ticket;
    session::generation_request request;
    session::request_events events;
  };

  void run();
  void fail_all(const error& why);
  /// Takes what came from other threads; waits for it while there is nothing to run. False: stop.
  bool take_orders();
  void start(submission order);
  result<void> run_step(const flow::step_table& table);
  /// A defect is an error of the step: this thread is the boundary that it does not cross.
  result<void> run_guarded(const flow::step_table& table);
  /// Ends what the engine held, and makes it anew.
  void recover(const error& why);

  local_engine& engine_;
  session::scheduler_limits limits_;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<submission> submitted_;
  std::vector<request_id> cancelled_;
  std::uint64_t next_ticket_ = 1;
  bool stop_ = false;
  bool interrupt_ = false;
  std::optional<error> failure_;  ///< why it cannot go on: interrupted, or not to be renewed
  std::uint64_t recoveries_ = 0;
  session::scheduler_load load_;
  cache_bytes caches_;

  // Of the engine's thread.
  session::step_scheduler scheduler_;
  session::service_requests requests_;
  std::thread thread_;
};

}  // namespace cedar::local
