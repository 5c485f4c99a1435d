// A program that a test starts, with everything it starts itself.
//
// 1. Nothing outlives the object: its end kills the program and all its descendants, also those
//    whose parent is gone, and reaps the program.
// 2. Descendants are recognised by a variable of the environment that they inherit, so that none
//    can hide behind a dead parent.
// 3. Every wait has a limit, and sleeps until there is news.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace cedar::test {

using namespace std::chrono_literals;

/// Longest wait for something that is expected to happen; a loaded machine takes its time.
inline constexpr std::chrono::milliseconds patience{60'000};

class program {
 public:
  /// Starts `path` with `arguments`; standard input is empty. Throws if it cannot be started.
  program(const std::filesystem::path& path, const std::vector<std::string>& arguments);
  ~program();
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;

  /// Waits until standard output (errors) holds `text`, after what was there already.
  bool wait_output(const std::string& text, std::chrono::milliseconds within = patience);
  bool wait_errors(const std::string& text, std::chrono::milliseconds within = patience);
  /// Waits for the end; true if it came.
  bool wait_end(std::chrono::milliseconds within = patience);

  /// Exit code, 128 + number of the signal that ended it, or -1 while it runs.
  int code() const { return code_; }
  const std::string& output() const { return output_; }
  const std::string& errors() const { return errors_; }

  /// All processes of it that are alive (not zombies), itself included.
  std::vector<pid_t> processes() const;
  /// The same without itself.
  std::vector<pid_t> descendants() const;
  /// Waits until there are `count` descendants; false if there are not within the limit.
  bool wait_descendants(std::size_t count, std::chrono::milliseconds within = patience) const;
  /// Processor time that all its processes have used so far.
  std::chrono::nanoseconds cpu_time() const;

 private:
  bool pump(std::chrono::steady_clock::time_point until);
  void take(int& pipe, std::string& to);

  std::string tag_;
  pid_t pid_ = -1;
  int process_ = -1;  // a descriptor of the process, readable when it has ended
  int output_pipe_ = -1;
  int errors_pipe_ = -1;
  std::string output_;
  std::string errors_;
  int code_ = -1;
};

/// What a program that ran to its end left.
struct finished {
  int code = -1;
  std::string output;
  std::string errors;
  std::chrono::milliseconds took{0};
};

/// Runs `path` to its end, which must come within our patience; no process may be left then.
finished run(const std::filesystem::path& path, const std::vector<std::string>& arguments);

/// Processor time that process `pid` has used so far; zero if it is gone.
std::chrono::nanoseconds cpu_time_of(pid_t pid);

/// The child processes of this process, alive or not yet reaped.
std::vector<pid_t> children_of(pid_t pid);

bool contains(const std::string& text, const std::string& part);

}  // namespace cedar::test
