#include "runtime/session/draft_setting.hpp"

#include <charconv>

namespace cedar::session {

namespace {

constexpr std::string_view fixed = "fixed:";
constexpr std::string_view automatic = "auto";

}  // namespace

std::string to_string(const draft_setting& setting) {
  if (setting.automatic) return std::string(automatic);
  return setting.tokens == 0 ? "off" : std::string(fixed) + std::to_string(setting.tokens);
}

result<draft_setting> draft_setting_of(std::string_view text) {
  draft_setting out;
  if (text == "off") return out;
  out.automatic = text == automatic;
  if (out.automatic) return out;
  if (text.starts_with(fixed)) {
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + fixed.size(), end, out.tokens);
    if (read.ec == std::errc{} && read.ptr == end && out.tokens > 0) return out;
  }
  return fail(errc::invalid_argument, "write off, auto, or fixed:K with K of 1 and more");
}

}  // namespace cedar::session
