#include "runtime/transport/ucx/endpoint.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/base/check.hpp"
#include "runtime/transport/ucx/address.hpp"
#include "runtime/transport/ucx/status.hpp"

namespace cedar::transport::ucx {

namespace {

ucs_sock_addr_t view_of(const sockaddr_in& address) {
  return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
}

/// From UCX's description of an endpoint the resource of the lane that carries active messages:
///   #                 lane[1]:  1:tcp/lo.0 md[0]   -> md[0]/tcp/sysdev[255] am am_bw#0
std::string transport_in(const std::string& description) {
  std::size_t begin = 0;
  while (begin < description.size()) {
    const std::size_t end = std::min(description.find('\n', begin), description.size());
    const std::string line = description.substr(begin, end - begin) + " ";
    begin = end + 1;
    const std::size_t lane = line.find("lane[");
    if (lane == std::string::npos || line.find(" am ") == std::string::npos) continue;
    const std::size_t first = line.find(':', line.find(':', lane) + 1) + 1;
    const std::size_t last = line.find_first_of(". ", first);
    if (last != std::string::npos) return line.substr(first, last - first);
  }
  return "unknown";
}

}  // namespace

result<std::unique_ptr<listener>> listener::open(worker& owner, const sockaddr_in& address) {
  if (auto checked = check_free(address); !checked) return fail(checked.error());
  std::unique_ptr<listener> out(new listener());
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr = view_of(address);
  params.conn_handler = {&listener::note, out.get()};
  ucs_status_t status = ucp_listener_create(owner.handle(), &params, &out->handle_);
  if (status != UCS_OK) {
    out->handle_ = nullptr;
    return fail_ucx("cannot listen on " + to_text(address), status);
  }
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  status = ucp_listener_query(out->handle_, &attributes);
  if (status != UCS_OK) return fail_ucx("UCX listener's address", status);
  std::memcpy(&out->address_, &attributes.sockaddr, sizeof out->address_);
  return out;
}

listener::~listener() {
  if (handle_ == nullptr) return;
  for (const ucp_conn_request_h request : requests_) ucp_listener_reject(handle_, request);
  ucp_listener_destroy(handle_);
}

void listener::note(ucp_conn_request_h request, void* self) noexcept {
  static_cast<listener*>(self)->requests_.push_back(request);
}

std::optional<ucp_conn_request_h> listener::next_request() {
  if (requests_.empty()) return std::nullopt;
  const ucp_conn_request_h request = requests_.front();
  requests_.erase(requests_.begin());
  return request;
}

void listener::reject(ucp_conn_request_h request) {
  ucp_listener_reject(handle_, request);
}

result<std::unique_ptr<endpoint>> endpoint::create(worker& owner, ucp_ep_params_t& params) {
  std::unique_ptr<endpoint> out(new endpoint());
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {&endpoint::note, out.get()};
  const ucs_status_t status = ucp_ep_create(owner.handle(), &params, &out->handle_);
  if (status != UCS_OK) {
    out->handle_ = nullptr;
    return fail_ucx("UCX endpoint", status);
  }
  return out;
}

result<std::unique_ptr<endpoint>> endpoint::connect(worker& owner, const sockaddr_in& address) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr = view_of(address);
  return create(owner, params);
}

result<std::unique_ptr<endpoint>> endpoint::accept(worker& owner, ucp_conn_request_h request) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = request;
  return create(owner, params);
}

endpoint::~endpoint() {
  if (handle_ != nullptr && closing_ == nullptr) close();
  // Not complete: UCX keeps the request until the worker is destroyed, and then frees it.
  if (closing_ != nullptr) ucp_request_free(closing_);
}

void endpoint::note(void* self, ucp_ep_h, ucs_status_t status) noexcept {
  static_cast<endpoint*>(self)->failure_ = status;
}

std::optional<std::string> endpoint::failure() const {
  if (failure_ == UCS_OK) return std::nullopt;
  return ucs_status_string(failure_);
}

void endpoint::close() {
  CEDAR_ASSERT(handle_ != nullptr && closing_ == nullptr, "an endpoint is closed once");
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* request = ucp_ep_close_nbx(std::exchange(handle_, nullptr), &params);
  if (UCS_PTR_IS_PTR(request)) closing_ = request;
}

bool endpoint::closed() {
  if (handle_ != nullptr) return false;
  if (closing_ == nullptr) return true;
  if (ucp_request_check_status(closing_) == UCS_INPROGRESS) return false;
  ucp_request_free(std::exchange(closing_, nullptr));
  return true;
}

std::string endpoint::transport() const {
  char* text = nullptr;
  std::size_t bytes = 0;
  FILE* stream = open_memstream(&text, &bytes);
  if (stream == nullptr) return "unknown";
  ucp_ep_print_info(handle_, stream);
  std::fclose(stream);
  std::string found = transport_in({text, bytes});
  std::free(text);
  return found;
}

}  // namespace cedar::transport::ucx
