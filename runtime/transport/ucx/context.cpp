#include "runtime/transport/ucx/context.hpp"

#include <utility>
#include <vector>

#include "kernels/base/check.hpp"
#include "runtime/transport/ucx/status.hpp"

namespace cedar::transport::ucx {

namespace {

struct free_config {
  void operator()(ucp_config_t* config) const noexcept { ucp_config_release(config); }
};
using config_handle = std::unique_ptr<ucp_config_t, free_config>;

struct setting {
  const char* name;
  std::string value;
};

result<config_handle> configure(reach carry, const std::string& devices) {
  ucp_config_t* raw = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &raw);
  if (status != UCS_OK) return fail_ucx("UCX configuration", status);
  config_handle config(raw);
  const bool shared = carry == reach::shared_host;
  // Settings of transports go by the name inside their table here, without the UCX_POSIX_ or
  // UCX_TCP_ that they have in the environment; one that no transport knows is only warned about.
  std::vector<setting> settings{
      {"TLS", shared ? "posix,sysv,tcp,self" : "tcp,self"},
      {"NET_DEVICES", devices},
      {"SOCKADDR_TLS_PRIORITY", "tcp"},
      // A restarted node gets its port back although old connections linger.
      {"CM_REUSEADDR", "y"},
      // Neither TCP nor shared memory needs registered memory; an unbounded cache of it would only
      // grow.
      {"RCACHE_ENABLE", "n"},
  };
  // Without it, endpoints that report a dead peer silently leave shared memory out.
  if (shared) settings.push_back({"MM_ERROR_HANDLING", "y"});
  for (const setting& next : settings) {
    status = ucp_config_modify(config.get(), next.name, next.value.c_str());
    if (status != UCS_OK) return fail_ucx(std::string("UCX setting ") + next.name, status);
  }
  return config;
}

}  // namespace

result<std::unique_ptr<context>> context::open(reach carry, const std::string& devices) {
  const auto config = configure(carry, devices);
  if (!config) return fail(config.error());
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "cedar";
  ucp_context_h handle = nullptr;
  const ucs_status_t status = ucp_init(&params, config->get(), &handle);
  if (status != UCS_OK) return fail_ucx("UCX on devices '" + devices + "'", status);
  return std::unique_ptr<context>(new context(handle));
}

context::~context() {
  ucp_cleanup(handle_);
}

result<std::unique_ptr<worker>> worker::open(const context& parent) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucp_worker_h handle = nullptr;
  ucs_status_t status = ucp_worker_create(parent.handle(), &params, &handle);
  if (status != UCS_OK) return fail_ucx("UCX worker", status);
  std::unique_ptr<worker> out(new worker(handle));
  status = ucp_worker_get_efd(handle, &out->event_fd_);
  if (status != UCS_OK) return fail_ucx("UCX worker's event descriptor", status);
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  status = ucp_worker_query(handle, &attributes);
  if (status != UCS_OK) return fail_ucx("UCX worker's limits", status);
  out->header_bytes_max_ = attributes.max_am_header;
  return out;
}

worker::~worker() {
  ucp_worker_destroy(handle_);
}

ucp_worker_h worker::handle() const {
  CEDAR_ASSERT(std::this_thread::get_id() == owner_, "a worker belongs to one thread");
  return handle_;
}

result<void> worker::on_message(unsigned id, ucp_am_recv_callback_t callback, void* argument) {
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  params.id = id;
  params.cb = callback;
  params.arg = argument;
  params.flags = UCP_AM_FLAG_WHOLE_MSG;
  const ucs_status_t status = ucp_worker_set_am_recv_handler(handle(), &params);
  if (status != UCS_OK) return fail_ucx("UCX active message handler", status);
  return {};
}

bool worker::progress() {
  return ucp_worker_progress(handle()) != 0;
}

result<bool> worker::arm() {
  const ucs_status_t status = ucp_worker_arm(handle());
  if (status == UCS_OK) return true;
  if (status == UCS_ERR_BUSY) return false;
  return fail_ucx("UCX worker cannot sleep", status);
}

}  // namespace cedar::transport::ucx
