// UCX context and worker: one wrapper each.
//
// 1. Both are pinned: UCX and callbacks point at them. Members are declared parents first.
// 2. A worker belongs to the thread that opened it; every call checks that.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <memory>
#include <string>
#include <thread>

#include "runtime/base/result.hpp"
#include "runtime/transport/ucx/ucx_port.hpp"

namespace cedar::transport::ucx {

class context {
 public:
  /// `devices`: comma-separated names. Nothing is read from or written to the environment by us;
  /// UCX itself honours UCX_* variables for settings that are not made here.
  static result<std::unique_ptr<context>> open(reach carry, const std::string& devices);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  ucp_context_h handle() const { return handle_; }

 private:
  explicit context(ucp_context_h handle) : handle_(handle) {}

  ucp_context_h handle_;
};

class worker {
 public:
  static result<std::unique_ptr<worker>> open(const context& parent);
  /// Endpoints and listeners of this worker are gone before it.
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  ucp_worker_h handle() const;

  /// Registers what is called for active messages of `id`: never throws, may only note things down.
  result<void> on_message(unsigned id, ucp_am_recv_callback_t callback, void* argument);

  /// Does what is there to be done; false: nothing was.
  bool progress();

  /// True: sleep on event_fd() until something happens. False: something has happened, progress
  /// first.
  result<bool> arm();
  int event_fd() const { return event_fd_; }

  /// Largest header of an active message.
  std::size_t header_bytes_max() const { return header_bytes_max_; }

 private:
  explicit worker(ucp_worker_h handle) : handle_(handle) {}

  ucp_worker_h handle_;
  std::thread::id owner_ = std::this_thread::get_id();
  int event_fd_ = -1;
  std::size_t header_bytes_max_ = 0;
};

}  // namespace cedar::transport::ucx
