// Server-sent events out of the bytes of a stream, however they are cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace cedar::http {

/// Larger events are errors.
inline constexpr std::size_t event_bytes_max = 1U << 20U;

class event_parser {
 public:
  /// The data of events that `bytes` complete; lines of one event are joined by '\n', fields other
  /// than data and comments are left out. Errors: malformed (an event that is too large); then the
  /// parser is of no further use.
  result<std::vector<std::string>> push(std::string_view bytes);

  /// Some of an event has come, and not its end.
  bool is_inside() const noexcept { return !line_.empty() || has_data_; }

 private:
  void end_line(std::vector<std::string>& to);

  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool after_return_ = false;  ///< '\r' ended a line: a '\n' right behind belongs to it
};

}  // namespace cedar::http
