#include "runtime/text/completion.hpp"

#include <algorithm>
#include <utility>

#include "runtime/text/internal/chat_strings.hpp"
#include "runtime/text/internal/python_json.hpp"

namespace cedar::text {
namespace {

class completion_reader {
 public:
  explicit completion_reader(std::string_view text) : text_(text) {}

  result<completion> read(chat_mode mode) {
    completion out;
    if (const result<void> cut = cut_end_of_sequence(); !cut) return fail(cut.error());
    if (mode == chat_mode::thinking) {
      const std::size_t end = text_.find(control::think_end);
      if (end == std::string_view::npos)
        return malformed("the reasoning does not end with " + std::string(control::think_end));
      out.reasoning = text_.substr(0, end);
      at_ = end + control::think_end.size();
    }
    // A call begins after a blank line that is not part of the content.
    const std::string calls_begin = std::string(blank_line) + std::string(markup::calls_begin);
    const std::size_t end = std::min(text_.find(calls_begin, at_), text_.size());
    out.content = text_.substr(at_, end - at_);
    const std::string_view said = text_.substr(0, end);
    for (const std::string_view string : control::of_completions) {
      // Of the first </think> in mode thinking only what follows counts.
      const bool ends_reasoning = string == control::think_end;
      const std::size_t found = said.find(string, ends_reasoning ? at_ : 0);
      if (found == std::string_view::npos) continue;
      const char* where = found < at_ ? "reasoning" : "content";
      at_ = found;
      return malformed("control string " + std::string(string) + " inside the " + where);
    }
    at_ = end;
    if (end < text_.size()) {
      at_ += calls_begin.size();
      if (const result<void> read = calls(out.tool_calls); !read) return fail(read.error());
    }
    return out;
  }

 private:
  tl::unexpected<error> malformed(const std::string& what) const {
    return fail(errc::malformed, "answer, byte " + std::to_string(at_) + ": " + what);
  }

  result<void> cut_end_of_sequence() {
    const std::size_t end = text_.find(control::end_of_sequence);
    at_ = std::min(end, text_.size());
    if (end == std::string_view::npos) return malformed("no end of sequence");
    if (end + control::end_of_sequence.size() != text_.size())
      return malformed("end of sequence before the end");
    text_ = text_.substr(0, end);
    at_ = 0;
    return {};
  }

  bool take(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }

  /// The text up to `stop`, which is taken too.
  result<std::string_view> until(std::string_view stop) {
    const std::size_t end = text_.find(stop, at_);
    if (end == std::string_view::npos) return malformed("missing " + std::string(stop));
    const std::string_view out = text_.substr(at_, end - at_);
    at_ = end + stop.size();
    return out;
  }

  /// A name in quotes, of which the first is taken already.
  result<std::string_view> name(std::string_view stop) {
    const std::size_t begin = at_;
    const result<std::string_view> name = until(stop);
    if (!name || name->find('"') == std::string_view::npos) return name;
    at_ = begin;
    return malformed("a name with a quote");
  }

  result<void> calls(std::vector<completed_call>& out) {
    if (!take("\n")) return malformed("a line break must follow");
    do {
      if (!take(markup::invoke_begin))
        return malformed("expected " + std::string(markup::invoke_begin));
      result<completed_call> read = call();
      if (!read) return fail(read.error());
      out.push_back(std::move(*read));
    } while (!take(markup::calls_end));
    return at_ == text_.size() ? result<void>() : malformed("text after the calls");
  }

  result<completed_call> call() {
    const result<std::string_view> qualified = name(markup::head_end);
    if (!qualified) return fail(qualified.error());
    result<tool_name> name = parse_tool_name(*qualified);
    if (!name) return malformed(name.error().message);
    if (!take("\n")) return malformed("a line break must follow");
    std::string arguments;
    std::vector<std::string_view> keys;
    while (take(markup::parameter_begin))
      if (const result<void> read = parameter(arguments, keys); !read) return fail(read.error());
    if (keys.empty()) take("\n");  // a call without parameters has an empty line
    if (!take(markup::invoke_end) || !take("\n"))
      return malformed("expected " + std::string(markup::invoke_end) + " and a line break");
    return completed_call{std::move(*name), "{" + arguments + "}"};
  }

  result<void> parameter(std::string& arguments, std::vector<std::string_view>& keys) {
    const result<std::string_view> key = name(markup::string_attribute);
    if (!key) return fail(key.error());
    if (std::find(keys.begin(), keys.end(), *key) != keys.end())
      return malformed("parameter '" + std::string(*key) + "' twice");
    const bool is_string = take("true\">");
    if (!is_string && !take("false\">")) return malformed("expected true or false");
    const result<std::string_view> value = until(markup::parameter_end);
    if (!value) return fail(value.error());
    if (!is_string && !is_json(*value))
      return malformed("the value of '" + std::string(*key) + "' is not JSON");
    if (!take("\n")) return malformed("a line break must follow");
    arguments += (keys.empty() ? "" : ", ") + python_json_string(*key) + ": " +
                 (is_string ? python_json_string(*value) : std::string(*value));
    keys.push_back(*key);
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

result<completion> parse_completion(std::string_view text, chat_mode mode) {
  return completion_reader(text).read(mode);
}

}  // namespace cedar::text
