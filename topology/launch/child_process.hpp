// A process that this one started and answers for: it never outlives its owner.
//
// 1. The child leads a process group of its own, so that Ctrl-C in a terminal reaches the parent
// alone.
// 2. `cedar node --parent` asks the kernel to be killed when its parent dies; the destructor kills
// and
//    reaps. A stopped child (SIGSTOP) is killed like any other.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"

namespace cedar::topology {

class child_process {
 public:
  /// Starts `program` with `arguments` (without the program's name). Standard input is empty;
  /// output and errors go where the parent's go. Errors: io.
  static result<child_process> start(const std::string& program,
                                     const std::vector<std::string>& arguments);

  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&&) = delete;
  ~child_process();

  pid_t pid() const noexcept { return pid_; }

  /// "exit status 3" or "signal 9 (Killed)" once it has ended; reaps it.
  std::optional<std::string> ended();

  /// Waits for the end until `limit`; true if it ended.
  bool wait(std::chrono::milliseconds limit);

  /// SIGKILL, and reaps.
  void kill();

 private:
  explicit child_process(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  std::optional<std::string> ended_;
};

}  // namespace cedar::topology
