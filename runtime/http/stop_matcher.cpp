#include "runtime/http/stop_matcher.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"

namespace cedar::http {

stop_matcher::stop_matcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) CEDAR_REQUIRE(!stop.empty(), "a stop string has a text");
}

std::size_t stop_matcher::held_back() const {
  std::size_t most = 0;
  for (const std::string& stop : stops_)
    for (std::size_t bytes = std::min(stop.size() - 1, pending_.size()); bytes > most; --bytes)
      if (pending_.ends_with(std::string_view(stop).substr(0, bytes))) most = bytes;
  return most;
}

std::string stop_matcher::push(std::string_view text) {
  if (stopped_) return {};
  pending_ += text;
  std::size_t first_end = std::string::npos;
  std::size_t begin = 0;
  for (const std::string& stop : stops_) {
    const std::size_t at = pending_.find(stop);
    if (at == std::string::npos) continue;
    const std::size_t end = at + stop.size();
    if (end < first_end || (end == first_end && at < begin)) {
      first_end = end;
      begin = at;
    }
  }
  stopped_ = first_end != std::string::npos;
  const std::size_t certain = stopped_ ? begin : pending_.size() - held_back();
  std::string out = pending_.substr(0, certain);
  pending_.erase(0, stopped_ ? pending_.size() : certain);
  return out;
}

std::string stop_matcher::finish() {
  return std::exchange(pending_, {});
}

}  // namespace cedar::http
