// Turns Ctrl-C and SIGTERM into calls.
//
// The signals are blocked in every thread that is started later, so it is made first.
#pragma once

#include <signal.h>

#include <functional>
#include <mutex>
#include <thread>

namespace cedar::tools {

class signal_watch {
 public:
  signal_watch();
  ~signal_watch();
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;

  /// What is called, in the watch's thread, for every signal; at once if one has come already.
  /// nullptr: nothing. When this returns, no earlier reaction runs any more.
  void react(std::function<void()> reaction);

 private:
  void watch();

  int stop_;
  int signals_ = -1;
  sigset_t before_{};
  std::mutex mutex_;
  std::function<void()> reaction_;  ///< guarded by mutex_
  bool seen_ = false;  ///< guarded by mutex_
  std::thread thread_;
};

}  // namespace cedar::tools
