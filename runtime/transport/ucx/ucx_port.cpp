#include "runtime/transport/ucx/ucx_port.hpp"

#include <pthread.h>
#include <signal.h>

#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/transport/ucx/mailbox.hpp"
#include "runtime/transport/ucx/port_loop.hpp"

namespace cedar::transport::ucx {

namespace {

/// Signals are for the thread that owns the process, not for ours.
class signals_blocked {
 public:
  signals_blocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_;
};

result<void> check(const port_options& options) {
  if (options.secret.size() < secret_bytes_min) {
    return fail(errc::invalid_argument,
                "the shared secret has " + std::to_string(options.secret.size()) +
                    " bytes, at least " + std::to_string(secret_bytes_min) + " are needed");
  }
  if (options.name.empty() || options.name.size() > node_name_bytes_max) {
    return fail(errc::invalid_argument, "node name '" + options.name + "' must have 1 to " +
                                            std::to_string(node_name_bytes_max) + " bytes");
  }
  return {};
}

class ucx_port final : public port {
 public:
  explicit ucx_port(const port_options& common)
      : self_(common.self), box_(common.queue_bytes_max) {}
  ~ucx_port() override {
    const result<void> closed = close({});
    static_cast<void>(closed);
  }

  /// Starts the thread; returns when it listens, or has failed to.
  result<void> start(const port_options& common, const ucx_options& options,
                     port_handler& handler) {
    std::promise<result<std::string>> listening;
    std::future<result<std::string>> outcome = listening.get_future();
    {
      const signals_blocked blocked;
      thread_ = std::thread([this, common, options, &handler, &listening] {
        pthread_setname_np(pthread_self(), "cedar-transport");
        auto loop = port_loop::open(common, options, handler, box_);
        if (!loop) {
          listening.set_value(fail(loop.error()));
          return;
        }
        listening.set_value((*loop)->address());
        outcome_ = (*loop)->run();
      });
    }
    result<std::string> address = outcome.get();
    if (!address) return fail(address.error());
    address_ = std::move(*address);
    return {};
  }

  node_id self() const override { return self_; }
  std::string address() const override { return address_; }

  void connect(node_id peer, const std::string& address,
               std::chrono::milliseconds deadline) override {
    box_.post(connect_command{peer, address, deadline});
  }
  void send(node_id to, flow::frame frame) override { box_.send(to, std::move(frame)); }
  void disconnect(node_id peer, const error& reason) override {
    box_.post(disconnect_command{peer, reason});
  }
  port_statistics statistics() const override { return box_.statistics(); }

  result<void> close(std::chrono::milliseconds deadline) override {
    const std::lock_guard lock(closing_);
    if (thread_.joinable()) {
      box_.post(close_command{deadline});
      thread_.join();
    }
    return outcome_;
  }

 private:
  const node_id self_;
  std::string address_;
  mailbox box_;
  std::mutex closing_;
  result<void> outcome_;  ///< of the thread, once joined
  std::thread thread_;
};

}  // namespace

result<std::unique_ptr<port>> open_port(const port_options& common, const ucx_options& options,
                                        port_handler& handler) {
  if (auto checked = check(common); !checked) return fail(checked.error());
  auto out = std::make_unique<ucx_port>(common);
  if (auto started = out->start(common, options, handler); !started) return fail(started.error());
  return out;
}

}  // namespace cedar::transport::ucx
