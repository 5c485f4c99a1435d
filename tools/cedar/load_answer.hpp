// One request of a load, from its bytes to what it came to.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/http/client/event_parser.hpp"

namespace cedar::tools {

struct load_answer {
  unsigned status = 0;  ///< 0: none came
  std::string failure;  ///< empty: whole (200), refused in good order (429, 503), or expired
  /// The stream had begun when its time had passed, and the server said so in its last event.
  bool is_expired = false;
  bool is_late = false;  ///< not ended within its deadline; a failure too
  std::string text;
  std::string finish_reason;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t tokens = 0;  ///< generated
  double first_ms = 0;  ///< from sending to the first text (or to the end, if it has none)
  double total_ms = 0;  ///< from sending to the last byte
  std::vector<double> between_ms;  ///< from each piece of text to the next

  bool is_whole() const noexcept { return status == 200 && failure.empty() && !is_expired; }
};

/// Reads a stream of completions as the server sends it, or a refusal.
class answer_reader {
 public:
  using time = std::chrono::steady_clock::time_point;

  explicit answer_reader(time sent) : sent_(sent), last_(sent) {}

  void take_status(unsigned status) { answer_.status = status; }
  void take_bytes(std::string_view bytes, time now);
  /// `how`: of the HTTP exchange. A stream counts as whole only if it said so itself.
  load_answer finish(const result<void>& how, time now);

 private:
  void take_event(const std::string& data, time now);
  void fail_once(std::string why);

  time sent_;
  time last_;
  http::event_parser events_;
  std::string body_;  ///< of a refusal
  bool has_text_ = false;
  bool is_done_ = false;
  load_answer answer_;
};

}  // namespace cedar::tools
