// Ends a text before the first stop string, while the text is still being made.
//
// 1. Text that could be the beginning of a stop string is held back until it is certain.
// 2. What push() and finish() return does not depend on where the text was cut: of several stop
//    strings the one that is complete first counts, of those that end together the longest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cedar::http {

class stop_matcher {
 public:
  /// None of `stops` is empty.
  explicit stop_matcher(std::vector<std::string> stops);

  /// More text; returns what is certain to lie before any stop string. Nothing after stopped().
  std::string push(std::string_view text);
  /// What was held back, when no more text comes.
  std::string finish();
  bool stopped() const noexcept { return stopped_; }

 private:
  /// Bytes at the end of pending_ that begin a stop string.
  std::size_t held_back() const;

  std::vector<std::string> stops_;
  std::string pending_;
  bool stopped_ = false;
};

}  // namespace cedar::http
