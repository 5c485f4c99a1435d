#include "runtime/http/chat_request.hpp"

#include "runtime/text/chat_json.hpp"

namespace cedar::http {

namespace {

using json = nlohmann::ordered_json;

void read_thinking(body_reader& body, text::prompt_options& frame) {
  if (const json* effort = body.find("reasoning_effort"); effort != nullptr && *effort != "none") {
    const auto read = text::read_effort(*effort);
    if (!read) return body.mistake("reasoning_effort", read.error().message);
    frame.mode = text::chat_mode::thinking;
    frame.effort = *read;
  }
  const json* thinking = body.find("thinking");
  if (thinking == nullptr) return;
  const json type = thinking->is_object() ? thinking->value("type", json()) : json();
  if (thinking->size() != 1 || (type != "enabled" && type != "disabled"))
    return body.mistake("thinking",
                        R"('thinking' must be {"type": "enabled"} or {"type": "disabled"})");
  frame.mode = type == "enabled" ? text::chat_mode::thinking : text::chat_mode::chat;
}

/// The tool that the answer has to call, if one is named.
std::optional<text::tool_name> read_tool_choice(body_reader& body, const json& choice,
                                                const std::vector<text::tool_definition>& tools) {
  if (choice == "auto" || choice == "none") return std::nullopt;
  const json function = choice.is_object() && choice.value("type", json()) == "function"
                            ? choice.value("function", json())
                            : json();
  const json name = function.is_object() ? function.value("name", json()) : json();
  if (!name.is_string()) {
    body.mistake("tool_choice",
                 R"('tool_choice' must be "auto", "none" or {"type": "function", "function": )"
                 R"({"name": NAME}})");
    return std::nullopt;
  }
  for (const text::tool_definition& tool : tools)
    if (tool.name.qualified() == name.get_ref<const std::string&>()) return tool.name;
  body.mistake("tool_choice.function.name", "'tool_choice' names no function of 'tools'");
  return std::nullopt;
}

/// Tools stand in a system message of their own, in front.
void read_tools(body_reader& body, chat_ask& ask) {
  const json* choice = body.find("tool_choice");
  std::vector<text::tool_definition> tools;
  if (const json* list = body.find("tools"); list != nullptr && *list != json::array()) {
    auto read = text::read_tools(*list);
    if (!read) return body.mistake(read.error().path, read.error().message);
    tools = std::move(*read);
  }
  if (choice != nullptr) ask.frame.calling = read_tool_choice(body, *choice, tools);
  if (tools.empty() || (choice != nullptr && *choice == "none")) return;
  text::chat_message front;
  front.role = text::chat_role::system;
  front.tools = std::move(tools);
  ask.messages.insert(ask.messages.begin(), std::move(front));
}

void read_format(body_reader& body) {
  const json* format = body.find("response_format");
  if (format == nullptr) return;
  if (!format->is_object() || format->value("type", json()) != "text")
    body.mistake("response_format", R"(of 'response_format' only {"type": "text"} is supported)");
}

void read_modalities(body_reader& body) {
  const json* list = body.find("modalities");
  if (list != nullptr && *list != json::array({"text"}))
    body.mistake("modalities", R"('modalities' must be ["text"])");
}

}  // namespace

api_result<chat_ask> parse_chat(std::string_view text) {
  const auto body = parse_body(text);
  if (!body) return tl::unexpected(body.error());
  body_reader reader(*body);
  chat_ask out;
  read_generation(reader, {"max_tokens", "max_completion_tokens"}, out);
  if (const json* messages = reader.find("messages")) {
    auto read = text::read_messages(*messages);
    if (read)
      out.messages = std::move(*read);
    else
      reader.mistake(read.error().path, read.error().message);
  } else {
    reader.mistake("messages", "'messages' is missing");
  }
  read_tools(reader, out);
  read_thinking(reader, out.frame);
  if (out.frame.calling && out.frame.mode == text::chat_mode::thinking)
    reader.mistake("tool_choice", "an answer that 'tool_choice' begins has no reasoning");
  read_format(reader);
  read_modalities(reader);
  reader.flag("logprobs", out.logprobs);
  reader.whole("top_logprobs", 0, top_logprobs_max, out.top_logprobs);
  if (out.top_logprobs > 0 && !out.logprobs)
    reader.mistake("top_logprobs", "'top_logprobs' goes with \"logprobs\": true");
  reader.ignore({"parallel_tool_calls", "prediction"});
  if (auto wrong = reader.finish()) return tl::unexpected(std::move(*wrong));
  return out;
}

}  // namespace cedar::http
