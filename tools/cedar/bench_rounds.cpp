#include "tools/cedar/bench_rounds.hpp"

#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>

#include "topology/launch/child_process.hpp"
#include "topology/launch/secret.hpp"

namespace cedar::tools {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using transport::port;

constexpr node_id asker{0};
constexpr node_id answerer{1};
constexpr auto patience = 20s;  ///< for the other process, and for a round
constexpr auto close_limit = 500ms;

transport::port_options options_for(node_id self, const transport::shared_secret& secret) {
  transport::port_options out;
  out.self = self;
  out.name = self == asker ? "asker" : "answerer";
  out.secret = secret;
  out.silence_limit = 5s;  // a loaded machine is not a lost peer
  return out;
}

/// The header says how many bytes the answer has.
flow::frame make_frame(std::uint64_t bytes, std::uint64_t answer_bytes) {
  flow::frame out;
  out.header.resize(sizeof answer_bytes);
  std::memcpy(out.header.data(), &answer_bytes, sizeof answer_bytes);
  if (bytes > 0) out.tensor = flow::freeze(kernels::buffer(bytes));
  return out;
}

/// Events of a port, awaited by one thread.
class listening_handler : public transport::port_handler {
 public:
  void on_peer_up(node_id) override {
    const std::scoped_lock lock(mutex_);
    up_ = true;
    changed_.notify_all();
  }
  void on_peer_lost(node_id, const error& reason) override {
    const std::scoped_lock lock(mutex_);
    lost_ = reason;
    changed_.notify_all();
  }

  result<void> await_up() {
    return await([this] { return up_; });
  }
  /// Until the peer is gone.
  error await_lost() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return lost_.has_value(); });
    return *lost_;
  }

 protected:
  template <class Condition>
  result<void> await(Condition holds) {
    std::unique_lock lock(mutex_);
    const bool settled = changed_.wait_for(lock, patience, [&] { return holds() || lost_; });
    if (lost_) return fail(lost_->with("the answering process"));
    if (!settled) return fail(errc::timeout, "the answering process does not answer");
    return {};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool up_ = false;
  std::optional<error> lost_;
};

class answering_handler final : public listening_handler {
 public:
  void on_frame(node_id from, flow::received_frame frame) override {
    std::uint64_t bytes = 0;
    if (frame.header.size() != sizeof bytes) return;
    std::memcpy(&bytes, frame.header.data(), sizeof bytes);
    if (!answer_ || answer_->payload_bytes() != bytes) answer_ = make_frame(bytes, 0);
    door->send(from, *answer_);
  }

  port* door = nullptr;  ///< set before anybody connects

 private:
  std::optional<flow::frame> answer_;
};

class asking_handler final : public listening_handler {
 public:
  asking_handler(flow::frame question, std::uint32_t rounds)
      : question_(std::move(question)), rounds_(rounds) {}

  void on_frame(node_id, flow::received_frame) override {
    const auto now = clock::now();
    const std::scoped_lock lock(mutex_);
    times_.push_back(std::chrono::duration<double, std::micro>(now - sent_).count());
    if (chained_ && times_.size() < rounds_) {
      ask_locked();
    } else {
      changed_.notify_all();
    }
  }

  /// Rounds that each start when the one before has ended.
  result<std::vector<double>> run_awake() {
    {
      const std::scoped_lock lock(mutex_);
      times_.clear();
      chained_ = true;
      ask_locked();
    }
    if (const auto done = await([this] { return times_.size() >= rounds_; }); !done)
      return fail(done.error());
    return times_;
  }
  /// Rounds with work before each.
  result<std::vector<double>> run_worked() {
    std::vector<std::uint8_t> memory(work_bytes);
    {
      const std::scoped_lock lock(mutex_);
      times_.clear();
      chained_ = false;
    }
    for (std::uint32_t round = 1; round <= rounds_; ++round) {
      for (std::uint8_t& byte : memory) ++byte;
      {
        const std::scoped_lock lock(mutex_);
        ask_locked();
      }
      if (const auto done = await([&] { return times_.size() >= round; }); !done)
        return fail(done.error());
    }
    return times_;
  }

  port* door = nullptr;  ///< set before anybody connects

 private:
  void ask_locked() {
    sent_ = clock::now();
    door->send(answerer, question_);
  }

  const flow::frame question_;
  const std::uint32_t rounds_;
  clock::time_point sent_;
  std::vector<double> times_;
  bool chained_ = false;
};

std::vector<std::string> answerer_arguments(const std::string& address,
                                            const topology::secret_file& secret,
                                            const transport::ucx::ucx_options& ucx) {
  std::vector<std::string> out{"bench",         "transport",
                               "--answer",      address,
                               "--secret-file", secret.path().string(),
                               "--parent",      std::to_string(::getpid()),
                               "--address",     ucx.bind_address};
  for (const std::string& device : ucx.devices) out.insert(out.end(), {"--devices", device});
  if (ucx.carry == transport::ucx::reach::shared_host) out.emplace_back("--shared-memory");
  return out;
}

}  // namespace

result<round_times> measure_rounds(const round_options& options) {
  const auto secret = topology::secret_file::create();
  if (!secret) return fail(secret.error());
  asking_handler handler(make_frame(options.there_bytes, options.back_bytes), options.rounds);
  auto door = transport::ucx::open_port(options_for(asker, secret->bytes()), options.ucx, handler);
  if (!door) return fail(door.error());
  handler.door = door->get();
  auto child =
      topology::child_process::start(std::filesystem::read_symlink("/proc/self/exe").string(),
                                     answerer_arguments((*door)->address(), *secret, options.ucx));
  if (!child) return fail(child.error());
  if (const auto up = handler.await_up(); !up) return fail(up.error());

  round_times out;
  auto awake = handler.run_awake();
  if (!awake) return fail(awake.error());
  auto worked = handler.run_worked();
  if (!worked) return fail(worked.error());
  out.awake_us = std::move(*awake);
  out.worked_us = std::move(*worked);
  for (const transport::peer_statistics& peer : (*door)->statistics().peers)
    out.transport = peer.transport;
  if (const auto closed = (*door)->close(close_limit); !closed) return fail(closed.error());
  child->wait(close_limit);
  return out;
}

result<void> answer_rounds(const std::string& address, const std::string& secret_file,
                           const transport::ucx::ucx_options& ucx) {
  const auto secret = topology::secret_file::read(secret_file);
  if (!secret) return fail(secret.error());
  answering_handler handler;
  auto door = transport::ucx::open_port(options_for(answerer, secret->bytes()), ucx, handler);
  if (!door) return fail(door.error());
  handler.door = door->get();
  (*door)->connect(asker, address, patience);
  if (const auto up = handler.await_up(); !up) return up;
  const error reason = handler.await_lost();
  static_cast<void>((*door)->close(close_limit));
  if (reason.code == errc::cancelled) return {};
  return fail(reason);
}

}  // namespace cedar::tools
