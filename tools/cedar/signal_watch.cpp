#include "tools/cedar/signal_watch.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace cedar::tools {

sigset_t ending_signals() {
  sigset_t out;
  sigemptyset(&out);
  sigaddset(&out, SIGINT);
  sigaddset(&out, SIGTERM);
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&out, SIGHUP);
  return out;
}

signal_watch::signal_watch() : stop_(eventfd(0, EFD_CLOEXEC)) {
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signals_ = signalfd(-1, &signals, SFD_CLOEXEC);
  thread_ = std::thread([this] { watch(); });
}

signal_watch::~signal_watch() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(stop_, &one, sizeof one));
  thread_.join();
  ::close(signals_);
  ::close(stop_);
}

void signal_watch::react(std::function<void()> reaction) {
  const std::scoped_lock lock(mutex_);
  reaction_ = std::move(reaction);
  if (reaction_ && seen_) reaction_();
}

void signal_watch::watch() {
  pollfd both[2] = {{signals_, POLLIN, 0}, {stop_, POLLIN, 0}};
  while (::poll(both, 2, -1) >= 0 || errno == EINTR) {
    if (both[1].revents != 0) return;
    if (both[0].revents == 0) continue;
    signalfd_siginfo info{};
    static_cast<void>(!::read(signals_, &info, sizeof info));
    const std::scoped_lock lock(mutex_);
    seen_ = true;
    if (reaction_) reaction_();
  }
}

}  // namespace cedar::tools
