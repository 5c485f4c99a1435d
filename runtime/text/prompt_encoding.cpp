#include "runtime/text/prompt_encoding.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/text/internal/chat_strings.hpp"
#include "runtime/text/internal/chat_turns.hpp"
#include "runtime/text/internal/python_json.hpp"

namespace cedar::text {
namespace {

using nlohmann::ordered_json;

/// Pieces under construction; neighbouring text becomes one piece.
class piece_writer {
 public:
  void text(std::string_view added) {
    if (added.empty()) return;
    if (pieces_.empty() || pieces_.back().control) pieces_.push_back({{}, false});
    pieces_.back().text += added;
  }
  void control(std::string_view string) { pieces_.push_back({std::string(string), true}); }

  /// Text of the template itself, in which control strings are meant as such.
  void markup(std::string_view added) {
    constexpr std::array<std::string_view, 3> inside = {control::dsml, control::think_begin,
                                                        control::think_end};
    while (!added.empty()) {
      std::size_t first = added.size();
      std::string_view found;
      for (const std::string_view string : inside) {
        const std::size_t at = added.find(string);
        if (at < first) {
          first = at;
          found = string;
        }
      }
      text(added.substr(0, first));
      if (found.empty()) return;
      control(found);
      added.remove_prefix(first + found.size());
    }
  }

  std::vector<prompt_piece> take() { return std::move(pieces_); }

 private:
  std::vector<prompt_piece> pieces_;
};

std::string_view task_string(quick_task task) {
  switch (task) {
    case quick_task::action:
      return "<｜action｜>";
    case quick_task::query:
      return "<｜query｜>";
    case quick_task::authority:
      return "<｜authority｜>";
    case quick_task::domain:
      return "<｜domain｜>";
    case quick_task::title:
      return "<｜title｜>";
    case quick_task::read_url:
      return "<｜read_url｜>";
  }
  return {};
}

/// The function object with its qualified name and the namespace's description in front.
ordered_json schema_of(const tool_definition& tool) {
  ordered_json schema = tool.function;
  schema["name"] = tool.name.qualified();
  if (tool.namespace_description.empty()) return schema;
  std::string description = tool.namespace_description;
  const auto own = schema.find("description");
  if (own != schema.end() && own->is_string())
    description += "\n" + own->get_ref<const std::string&>();
  schema["description"] = description;
  return schema;
}

/// The object that `written` is, directly or as JSON in a string or in a string in a string. A
/// string that is none of these is the parameter "arguments".
member_result<ordered_json> parameters_of(const ordered_json& written) {
  ordered_json decoded = written;
  for (int round = 0; round < 2 && decoded.is_string(); ++round) {
    const auto& text = decoded.get_ref<const std::string&>();
    if (!is_json(text)) break;
    ordered_json inner = ordered_json::parse(text);
    if (!json_levels_within_bounds(inner)) return invalid("", "nested too deeply");
    decoded = std::move(inner);
  }
  if (decoded.is_object()) return decoded;
  ordered_json raw = ordered_json::object();
  raw[std::string(raw_arguments_key)] = written;
  return raw;
}

class renderer {
 public:
  renderer(const std::vector<chat_turn>& turns, const prompt_options& options, bool keep)
      : turns_(turns), options_(options), keep_reasoning_(keep) {
    for (std::size_t i = 0; i < turns.size(); ++i)
      if (asks(i)) last_asking_ = i;
  }

  member_result<std::vector<prompt_piece>> render() {
    if (options_.context_messages == 0) write_.control(control::begin_of_sequence);
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      if (turns_[i].index < options_.context_messages) continue;
      if (const member_result<void> rendered = turn(i); !rendered)
        return invalid(rendered.error().in(turns_[i].path));
    }
    if (options_.calling) {
      write_.text(blank_line);
      begin_calls();
      begin_call(*options_.calling);
    }
    return write_.take();
  }

 private:
  bool thinking() const { return options_.mode == chat_mode::thinking; }

  /// True for turns that the assistant answers.
  bool asks(std::size_t i) const {
    return turns_[i].role == chat_role::user || (turns_[i].role == chat_role::system && i > 0);
  }

  member_result<void> turn(std::size_t i) {
    const chat_turn& turn = turns_[i];
    const chat_message& message = *turn.message;
    if (turn.role == chat_role::system || (i == 0 && thinking())) write_.control(control::system);
    if (i == 0 && thinking())
      write_.text("Reasoning Effort: " + std::to_string(options_.effort) +
                  " (range 1-100, the higher the value, the more thorough the reasoning)\n\n");
    if (turn.role == chat_role::system) {
      system(message);
    } else if (turn.role == chat_role::user) {
      user(turn);
    } else if (turn.role == chat_role::latest_reminder) {
      write_.control(control::latest_reminder);
      write_.text(message.content);
    } else if (const member_result<void> rendered = assistant(message, i); !rendered) {
      return rendered;
    }
    transition(i);
    return {};
  }

  void system(const chat_message& message) {
    write_.text(message.content);
    if (!message.tools.empty()) {
      write_.text(blank_line);
      write_.markup(sentence::tools_head);
      bool first = true;
      for (const tool_definition& tool : message.tools) {
        if (!std::exchange(first, false)) write_.text("\n");
        write_.text(python_json(schema_of(tool)));
      }
      write_.text(sentence::tools_tail);
    }
    if (!message.response_format) return;
    write_.text(blank_line);
    write_.text(sentence::response_format_head);
    write_.text(python_json(*message.response_format));
  }

  void user(const chat_turn& turn) {
    write_.control(control::user);
    bool first = true;
    for (const chat_message* part : turn.parts) {
      if (!std::exchange(first, false)) write_.text(blank_line);
      const bool result = part->role == chat_role::tool;
      if (result) write_.text("<tool_result>");
      content(*part);
      if (result) write_.text("</tool_result>");
    }
  }

  void content(const chat_message& message) {
    const std::string_view text = message.content;
    std::size_t done = 0;
    for (const content_image& image : message.images) {
      write_.text(text.substr(done, image.offset - done));
      write_.control(control::image);
      done = image.offset;
    }
    write_.text(text.substr(done));
  }

  member_result<void> assistant(const chat_message& message, std::size_t i) {
    const bool answers_task = i > 0 && turns_[i - 1].message->task.has_value();
    if (thinking() && !answers_task && (keep_reasoning_ || is_after_last_asking(i))) {
      write_.text(message.reasoning);
      write_.control(control::think_end);
    }
    write_.text(message.content);
    if (const member_result<void> rendered = calls(message.tool_calls); !rendered) return rendered;
    if (!message.continued) write_.control(control::end_of_sequence);
    return {};
  }

  void begin_calls() {
    write_.markup(markup::calls_begin);
    write_.text("\n");
  }

  void begin_call(const tool_name& name) {
    write_.markup(markup::invoke_begin);
    write_.text(name.qualified());
    write_.text("\">\n");
  }

  member_result<void> calls(const std::vector<tool_call>& calls) {
    if (calls.empty()) return {};
    write_.text(blank_line);
    begin_calls();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const tool_call& call = calls[i];
      const member_result<ordered_json> parameters = parameters_of(call.arguments);
      if (!parameters) return invalid(parameters.error().in(arguments_path(i)));
      begin_call(call.name);
      if (parameters->empty()) write_.text("\n");
      for (const auto& [key, value] : parameters->items()) parameter(key, value);
      write_.markup(markup::invoke_end);
      write_.text("\n");
    }
    write_.markup(markup::calls_end);
    return {};
  }

  void parameter(const std::string& key, const ordered_json& value) {
    write_.markup(markup::parameter_begin);
    write_.text(key);
    write_.text(markup::string_attribute);
    write_.text(value.is_string() ? "true" : "false");
    write_.text(markup::head_end);
    write_.text(value.is_string() ? value.get<std::string>() : python_json(value));
    write_.markup(markup::parameter_end);
    write_.text("\n");
  }

  /// What stands between this turn and the assistant's next one: its header, or the task.
  void transition(std::size_t i) {
    const bool last = i + 1 == turns_.size();
    if (!last && turns_[i + 1].role != chat_role::assistant &&
        turns_[i + 1].role != chat_role::latest_reminder)
      return;
    const std::optional<quick_task> task = turns_[i].message->task;
    if (task == quick_task::action) {
      header(thinking());
    } else if (!task && asks(i)) {
      header(thinking() && (keep_reasoning_ || i == last_asking_));
    }
    if (task) write_.control(task_string(*task));
  }

  void header(bool with_reasoning) {
    write_.control(control::assistant);
    write_.control(with_reasoning ? control::think_begin : control::think_end);
  }

  bool is_after_last_asking(std::size_t i) const { return !last_asking_ || i > *last_asking_; }

  const std::vector<chat_turn>& turns_;
  const prompt_options& options_;
  bool keep_reasoning_;
  std::optional<std::size_t> last_asking_;
  piece_writer write_;
};

}  // namespace

member_result<std::vector<prompt_piece>> encode_prompt(std::span<const chat_message> messages,
                                                       const prompt_options& options) {
  if (options.effort < 1 || options.effort > effort_max)
    return invalid("reasoning_effort",
                   std::to_string(options.effort) + ": must be 1 to " + std::to_string(effort_max));
  if (options.context_messages >= messages.size())
    return invalid("messages", "there are none to encode");
  const member_result<std::vector<chat_turn>> turns = make_turns(messages, options);
  if (!turns) return invalid(turns.error());
  if (options.calling) {
    const chat_turn& last = turns->back();
    const bool begins = last.role != chat_role::assistant && !last.message->task;
    if (!begins || options.mode == chat_mode::thinking)
      return invalid("tool_choice",
                     "an answer that begins with a call of " + options.calling->qualified() +
                         (begins ? " has no reasoning" : " cannot follow the last message"));
  }
  const bool keep = options.keep_reasoning ||
                    std::any_of(messages.begin(), messages.end(),
                                [](const chat_message& one) { return !one.tools.empty(); });
  return renderer(*turns, options, keep).render();
}

std::string begun_call(const tool_name& calling) {
  return std::string(blank_line) + std::string(markup::calls_begin) + "\n" +
         std::string(markup::invoke_begin) + calling.qualified() + "\">\n";
}

std::vector<const content_image*> images_of(std::span<const chat_message> messages,
                                            const prompt_options& options) {
  std::vector<const content_image*> out;
  for (std::size_t i = options.context_messages; i < messages.size(); ++i)
    for (const content_image& image : messages[i].images) out.push_back(&image);
  return out;
}

std::vector<prompt_piece> continuation_prompt(std::string_view text) {
  piece_writer write;
  write.control(control::begin_of_sequence);
  write.text(text);
  return write.take();
}

result<std::vector<token_id>> tokenize(const tokenizer& vocabulary,
                                       std::span<const prompt_piece> pieces) {
  std::vector<token_id> out;
  for (const prompt_piece& piece : pieces) {
    if (piece.control) {
      const std::optional<token_id> token = vocabulary.control_token(piece.text);
      if (!token) return fail(errc::not_found, "the tokenizer has no " + piece.text);
      out.push_back(*token);
      continue;
    }
    const auto encoded = vocabulary.encode(piece.text, control_strings::plain_text);
    if (!encoded) return fail(encoded.error());
    out.insert(out.end(), encoded->begin(), encoded->end());
  }
  return out;
}

}  // namespace cedar::text
