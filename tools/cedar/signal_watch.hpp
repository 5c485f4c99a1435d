// Turns Ctrl-C, SIGTERM and SIGHUP into calls.
//
// 1. The signals are blocked in every thread that is started later, so it is made first.
// 2. They stay blocked when the watch is gone: whoever had one is about to end by itself, and a
//    signal that comes while it puts things away must not end it half-way.
#pragma once

#include <signal.h>

#include <functional>
#include <mutex>
#include <thread>

namespace cedar::tools {

/// SIGINT, SIGTERM, and SIGHUP unless this process was started to ignore it (nohup).
sigset_t ending_signals();

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
  std::mutex mutex_;
  std::function<void()> reaction_;  ///< guarded by mutex_
  bool seen_ = false;  ///< guarded by mutex_
  std::thread thread_;
};

}  // namespace cedar::tools
