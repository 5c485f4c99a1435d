#include "runtime/store/json.hpp"

#include <set>
#include <vector>

namespace cedar::store {
namespace {

constexpr int depth_max = 32;  // our own files need 4

/// Keeps what a person can read of a parser's message; it may quote raw bytes of the text.
std::string printable(std::string_view message) {
  const std::size_t prefix = message.find("] ");  // "[json.exception.parse_error.101] ..."
  if (message.starts_with("[json.") && prefix != std::string_view::npos)
    message.remove_prefix(prefix + 2);
  std::string text(message);
  for (char& c : text)
    if (c < 0x20 || c > 0x7e) c = '?';
  return text;
}

/// Watches the parser's events for what nlohmann::json lets through.
class watcher {
 public:
  bool operator()(int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using event_t = nlohmann::json::parse_event_t;
    if (depth > depth_max && problem_.empty()) problem_ = "more than 32 levels of nesting";
    if (event == event_t::object_start) keys_.emplace_back();
    if (event == event_t::object_end && !keys_.empty()) keys_.pop_back();
    if (event == event_t::key && !keys_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second && problem_.empty())
        problem_ = "key \"" + key + "\" occurs twice in one object";
    }
    return problem_.empty();
  }

  const std::string& problem() const { return problem_; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string problem_;
};

}  // namespace

result<nlohmann::json> parse_json(std::string_view text, const std::string& name) {
  watcher watch;
  try {
    auto value = nlohmann::json::parse(
        text.begin(), text.end(),
        [&watch](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
          return watch(depth, event, parsed);
        });
    if (!watch.problem().empty()) return fail(errc::malformed, name + ": " + watch.problem());
    return value;
  } catch (const nlohmann::json::exception& problem) {
    return fail(errc::malformed, name + ": not JSON: " + printable(problem.what()));
  }
}

}  // namespace cedar::store
