#include "tools/cedar/load_answer.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace cedar::tools {

namespace {

using nlohmann::json;

/// More of an error's body is not looked at.
constexpr std::size_t body_bytes_max = 65536;

double milliseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// An error in OpenAI's form.
struct told_error {
  std::string message;  ///< empty: the body is in no such form
  std::string code;
};

told_error error_of(const json& body) {
  if (!body.is_object() || !body.contains("error")) return {};
  const json& what = body["error"];
  const auto text = [&](const char* key) {
    const bool has = what.is_object() && what.contains(key) && what[key].is_string();
    return has ? what[key].get<std::string>() : std::string();
  };
  told_error out{text("message"), text("code")};
  if (out.message.empty()) out.message = "error";
  return out;
}

}  // namespace

void answer_reader::fail_once(std::string why) {
  if (answer_.failure.empty()) answer_.failure = std::move(why);
}

void answer_reader::take_bytes(std::string_view bytes, time now) {
  if (answer_.status != 200) {
    body_ += bytes.substr(0, body_bytes_max - body_.size());
    return;
  }
  const auto some = events_.push(bytes);
  if (!some) return fail_once(some.error().message);
  for (const std::string& data : *some) take_event(data, now);
}

void answer_reader::take_event(const std::string& data, time now) {
  if (data == "[DONE]") {
    is_done_ = true;
    return;
  }
  const json event = json::parse(data, nullptr, false);
  if (const told_error error = error_of(event); !error.message.empty()) {
    if (error.code == "deadline_exceeded")
      answer_.is_expired = true;
    else
      fail_once("error event: " + error.message);
    return;
  }
  // An event of another form would be a mistake of the server, and is told as one.
  try {
    if (const auto usage = event.find("usage"); usage != event.end() && usage->is_object()) {
      answer_.prompt_tokens = usage->at("prompt_tokens").get<std::uint64_t>();
      answer_.tokens = usage->at("completion_tokens").get<std::uint64_t>();
    }
    if (event.at("choices").empty()) return;
    const json& choice = event.at("choices").at(0);
    if (choice.at("finish_reason").is_string())
      answer_.finish_reason = choice.at("finish_reason").get<std::string>();
    const auto text = choice.at("text").get<std::string>();
    if (text.empty()) return;
    answer_.text += text;
  } catch (const json::exception&) {
    return fail_once("an event that is no chunk of a completion: " + data.substr(0, 200));
  }
  if (std::exchange(has_text_, true))
    answer_.between_ms.push_back(milliseconds(now - last_));
  else
    answer_.first_ms = milliseconds(now - sent_);
  last_ = now;
}

load_answer answer_reader::finish(const result<void>& how, time now) {
  answer_.total_ms = milliseconds(now - sent_);
  if (!has_text_) answer_.first_ms = answer_.total_ms;
  if (!how) {
    answer_.is_late = how.error().code == errc::timeout;
    fail_once(how.error().message + (answer_.status == 0 ? ", and no beginning of it"
                                     : has_text_         ? ", in the middle of its text"
                                                         : ", and no text of it"));
  } else if (answer_.status == 200) {
    if (!is_done_ && !answer_.is_expired) fail_once("the stream ended without [DONE]");
  } else if (answer_.status != 429 && answer_.status != 503) {
    const std::string text = error_of(json::parse(body_, nullptr, false)).message;
    fail_once("status " + std::to_string(answer_.status) + (text.empty() ? "" : ": " + text));
  }
  return std::move(answer_);
}

}  // namespace cedar::tools
