#include "runtime/text/completion_stream.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/text/internal/chat_strings.hpp"
#include "runtime/text/internal/python_json.hpp"

namespace cedar::text {
namespace {

/// Every string whose beginning is held back.
constexpr std::array<std::string_view, 11> held_strings = {control::begin_of_sequence,
                                                           control::end_of_sequence,
                                                           control::think_begin,
                                                           control::think_end,
                                                           control::dsml,
                                                           markup::calls_begin,
                                                           markup::calls_end,
                                                           markup::invoke_begin,
                                                           markup::invoke_end,
                                                           markup::parameter_begin,
                                                           markup::parameter_end};

/// The bytes of the longest end of `text` that `string` begins with, without being all of it.
std::size_t begun_bytes(std::string_view text, std::string_view string) {
  for (std::size_t bytes = std::min(text.size(), string.size() - 1); bytes > 0; --bytes)
    if (text.ends_with(string.substr(0, bytes))) return bytes;
  return 0;
}

/// Removes the blank line that belongs to the calls, or what there is of it.
void strip_blank_line(std::string& text) {
  for (std::size_t i = 0; i < blank_line.size() && text.ends_with('\n'); ++i) text.pop_back();
}

}  // namespace

completion_stream::completion_stream(chat_mode mode)
    : state_(mode == chat_mode::thinking ? state::reasoning : state::content) {}

std::vector<completion_delta> completion_stream::push(std::string_view text) {
  if (state_ == state::ended) return {};
  pending_ += characters_.push(text);
  while (step()) continue;
  return std::exchange(deltas_, {});
}

std::vector<completion_delta> completion_stream::finish() {
  if (state_ == state::ended) return {};
  pending_ += characters_.finish();
  while (step()) continue;
  const std::string rest = take_rest();
  if (state_ == state::reasoning || state_ == state::content)
    emit(state_ == state::reasoning ? delta_kind::reasoning : delta_kind::content, rest);
  if (state_ == state::string_value) {
    emit_escaped(rest);
    emit(delta_kind::call_arguments, "\"");
  }
  if (state_ == state::json_value) emit_buffered_value(rest);
  end();
  return std::exchange(deltas_, {});
}

bool completion_stream::step() {
  switch (state_) {
    case state::reasoning:
    case state::content:
      return read_text();
    case state::calls:
    case state::call:
      return read_between();
    case state::call_head:
    case state::parameter_head:
      return read_head();
    case state::string_value:
      return read_string_value();
    case state::json_value:
    case state::ignored_value:
      return read_buffered_value();
    case state::ended:
      return false;
  }
  return false;
}

bool completion_stream::read_text() {
  if (after_calls_) {
    take(std::min(pending_.find_first_not_of(" \t\r\n"), pending_.size()));
    if (pending_.empty()) return false;
    after_calls_ = false;
  }
  const bool reasoning = state_ == state::reasoning;
  const delta_kind kind = reasoning ? delta_kind::reasoning : delta_kind::content;
  const match found =
      reasoning ? find({control::think_end, markup::calls_begin, control::end_of_sequence})
                : find({markup::calls_begin, control::end_of_sequence});
  if (found.string.empty()) {
    emit(kind, take(certain()));
    return false;
  }
  std::string text = take(found.at);
  take(found.string.size());
  if (found.string == markup::calls_begin) strip_blank_line(text);
  emit(kind, text);
  if (found.string == control::end_of_sequence)
    end();
  else
    enter(found.string == markup::calls_begin ? state::calls : state::content);
  return true;
}

bool completion_stream::read_between() {
  const match found =
      state_ == state::calls
          ? find({markup::invoke_begin, markup::calls_end, control::end_of_sequence})
          : find({markup::parameter_begin, markup::invoke_end, markup::invoke_begin,
                  markup::calls_end, control::end_of_sequence});
  if (found.string.empty()) {
    take(certain());
    return false;
  }
  take(found.at + found.string.size());
  if (found.string == control::end_of_sequence) {
    end();
  } else if (found.string == markup::parameter_begin) {
    enter(state::parameter_head);
  } else {
    end_call();
    after_calls_ = found.string == markup::calls_end;
    enter(after_calls_                           ? state::content
          : found.string == markup::invoke_begin ? state::call_head
                                                 : state::calls);
  }
  return true;
}

bool completion_stream::read_head() {
  const match found = find({markup::head_end, control::end_of_sequence});
  if (found.string.empty()) return false;
  const std::string head = take(found.at);
  take(found.string.size());
  if (found.string == control::end_of_sequence)
    end();
  else if (state_ == state::call_head)
    begin_call(head);
  else
    begin_parameter(head);
  return true;
}

bool completion_stream::read_string_value() {
  const match found = find({markup::parameter_end, control::end_of_sequence});
  if (found.string.empty()) {
    emit_escaped(take(certain()));
    return false;
  }
  emit_escaped(take(found.at));
  emit(delta_kind::call_arguments, "\"");
  take(found.string.size());
  enter(state::call);
  if (found.string == control::end_of_sequence) end();
  return true;
}

bool completion_stream::read_buffered_value() {
  const match found = find({markup::parameter_end, control::end_of_sequence});
  if (found.string.empty()) return false;
  const std::string value = take(found.at);
  take(found.string.size());
  if (state_ == state::json_value) emit_buffered_value(value);
  enter(state::call);
  if (found.string == control::end_of_sequence) end();
  return true;
}

void completion_stream::emit_buffered_value(std::string_view value) {
  emit(delta_kind::call_arguments, is_json(value) ? std::string(value) : python_json_string(value));
}

void completion_stream::begin_call(std::string_view qualified) {
  result<tool_name> name = parse_tool_name(qualified);
  completion_delta begin{delta_kind::call_begin, {}, calls_++, {}};
  begin.name = name ? std::move(*name) : tool_name{{}, std::string(qualified)};
  deltas_.push_back(std::move(begin));
  keys_.clear();
  call_open_ = true;
  emit(delta_kind::call_arguments, "{");
  enter(state::call);
}

void completion_stream::begin_parameter(std::string_view head) {
  const std::size_t at = head.rfind(markup::string_attribute);
  std::string key(head.substr(0, at));
  const bool is_string =
      at != std::string_view::npos && head.substr(at + markup::string_attribute.size()) == "true";
  if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) return enter(state::ignored_value);
  emit(delta_kind::call_arguments,
       (keys_.empty() ? "" : ", ") + python_json_string(key) + ": " + (is_string ? "\"" : ""));
  keys_.push_back(std::move(key));
  enter(is_string ? state::string_value : state::json_value);
}

void completion_stream::end_call() {
  if (!std::exchange(call_open_, false)) return;
  emit(delta_kind::call_arguments, "}");
  deltas_.push_back({delta_kind::call_end, {}, calls_ - 1, {}});
}

void completion_stream::end() {
  cut_off_ = state_ != state::content;
  end_call();
  pending_.clear();
  enter(state::ended);
}

void completion_stream::enter(state next) {
  state_ = next;
  searched_ = 0;  // other strings are looked for now
}

std::string completion_stream::take_rest() {
  std::size_t markup_at = std::string::npos;
  for (const std::string_view tag : {markup::open_tag, markup::close_tag})
    markup_at = std::min(markup_at, pending_.find(tag, certain()));
  std::string rest = pending_.substr(0, markup_at);
  if (markup_at != std::string::npos) strip_blank_line(rest);
  return rest;
}

completion_stream::match completion_stream::find(std::initializer_list<std::string_view> strings) {
  match first{pending_.size(), {}};
  std::size_t longest = 0;
  for (const std::string_view string : strings) {
    longest = std::max(longest, string.size());
    const std::size_t at = pending_.find(string, searched_);
    if (at < first.at) first = {at, string};
  }
  if (first.string.empty() && pending_.size() >= longest) searched_ = pending_.size() - longest + 1;
  return first;
}

std::string completion_stream::take(std::size_t bytes) {
  std::string out = pending_.substr(0, bytes);
  pending_.erase(0, bytes);
  searched_ -= std::min(searched_, bytes);
  return out;
}

std::size_t completion_stream::certain() const {
  std::size_t held = 0;
  for (const std::string_view string : held_strings)
    held = std::max(held, begun_bytes(pending_, string));
  std::size_t end = pending_.size() - held;
  // The token of the markup ends as it begins: what is complete is not cut for what may begin.
  const std::size_t token = pending_.rfind(control::dsml, end);
  if (token != std::string::npos && token < end && end < token + control::dsml.size())
    end = token + control::dsml.size();
  if (state_ == state::reasoning || state_ == state::content)
    for (std::size_t i = 0; i < blank_line.size() && end > 0 && pending_[end - 1] == '\n'; ++i)
      --end;
  return end;
}

void completion_stream::emit(delta_kind kind, std::string_view text) {
  if (text.empty()) return;
  const bool of_call = kind == delta_kind::call_arguments;
  const std::uint32_t call = of_call ? calls_ - 1 : 0;
  if (deltas_.empty() || deltas_.back().kind != kind || deltas_.back().call != call)
    deltas_.push_back({kind, {}, call, {}});
  deltas_.back().text += text;
}

void completion_stream::emit_escaped(std::string_view text) {
  std::string escaped;
  append_json_escaped(text, escaped);
  emit(delta_kind::call_arguments, escaped);
}

}  // namespace cedar::text
