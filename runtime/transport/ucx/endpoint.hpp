// UCX listener and endpoint: one wrapper each. Both belong to their worker's thread and die before
// it.
#pragma once

#include <netinet/in.h>
#include <ucp/api/ucp.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/transport/ucx/context.hpp"

namespace cedar::transport::ucx {

/// Listens and keeps what knocks until somebody asks. Pinned: UCX points at it.
class listener {
 public:
  /// Errors: io (address in use, named).
  static result<std::unique_ptr<listener>> open(worker& owner, const sockaddr_in& address);
  ~listener();
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;

  const sockaddr_in& address() const { return address_; }

  /// The next connection request; nothing if there is none. It must be accepted or rejected.
  std::optional<ucp_conn_request_h> next_request();
  void reject(ucp_conn_request_h request);

 private:
  listener() = default;
  static void note(ucp_conn_request_h request, void* self) noexcept;

  ucp_listener_h handle_ = nullptr;
  sockaddr_in address_{};
  std::vector<ucp_conn_request_h> requests_;
};

/// One connection. Pinned: its error callback points at it.
class endpoint {
 public:
  static result<std::unique_ptr<endpoint>> connect(worker& owner, const sockaddr_in& address);
  static result<std::unique_ptr<endpoint>> accept(worker& owner, ucp_conn_request_h request);
  /// The connection is closed, or never was: an open one is given up by force.
  ~endpoint();
  endpoint(const endpoint&) = delete;
  endpoint& operator=(const endpoint&) = delete;

  ucp_ep_h handle() const { return handle_; }

  /// Why the network gave up; nothing as long as it has not. The text differs at random for the
  /// same death: for people only.
  std::optional<std::string> failure() const;

  /// Gives the connection up: what is on its way completes as cancelled, soon. Once only.
  void close();
  /// close() was called and UCX is done with it.
  bool closed();

  /// Transport and device that carry active messages, e.g. "tcp/lo". Known once messages were
  /// exchanged.
  std::string transport() const;

 private:
  endpoint() = default;
  static result<std::unique_ptr<endpoint>> create(worker& owner, ucp_ep_params_t& params);
  static void note(void* self, ucp_ep_h handle, ucs_status_t status) noexcept;

  ucp_ep_h handle_ = nullptr;
  ucs_status_t failure_ = UCS_OK;
  void* closing_ = nullptr;  ///< UCX request of the close, while it is not complete
};

}  // namespace cedar::transport::ucx
