// Goal: requests become messages, and what would be lost is refused by its path. Method: JSON that
// differs in one place.
#include "runtime/text/chat_json.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

namespace cedar::text {
namespace {

using nlohmann::ordered_json;

chat_message only(const std::string& message) {
  auto read = read_messages(ordered_json::parse("[" + message + "]"));
  BOOST_REQUIRE_MESSAGE(read.has_value(), (read ? "" : read.error().message));
  BOOST_REQUIRE_EQUAL(read->size(), 1U);
  return std::move(read->front());
}

/// The error of reading `list`, which must be the person's.
member_error refusal(const std::string& list) {
  const auto read = read_messages(ordered_json::parse(list));
  BOOST_REQUIRE_MESSAGE(!read.has_value(), list);
  BOOST_TEST((read.error().code == errc::invalid_argument));
  BOOST_TEST(read.error().message.starts_with(read.error().path + ": "), read.error().message);
  return read.error();
}

/// The error, without "messages[1]", of a message after a user's.
std::string refusal_of_second(const std::string& message) {
  const std::string text =
      refusal(R"([{"role": "user", "content": "a"}, )" + message + "]").message;
  BOOST_TEST(text.starts_with("messages[1]"), text);
  return text.substr(text.find(text[11] == '.' ? '.' : ' ') + 1);
}

/// The error of the list of tools that `tools` is without its brackets.
std::string refusal_of_tools(const std::string& tools) {
  const auto read = read_tools(ordered_json::parse("[" + tools + "]"));
  BOOST_REQUIRE_MESSAGE(!read.has_value(), tools);
  BOOST_TEST(read.error().message.starts_with(read.error().path + ": "), read.error().message);
  return read.error().message;
}

const std::string name_rule =
    "must be NAME or NAMESPACE::NAME, each 1 to 64 of the letters a-z and A-Z, digits, _ and -";
const std::string namespace_rule =
    "must be a name of 1 to 64 of the letters a-z and A-Z, digits, _ and -";

struct wrong {
  std::string message;
  std::string reason;
};

BOOST_AUTO_TEST_SUITE(messages_of_requests)

BOOST_AUTO_TEST_CASE(all_members_are_read) {
  const chat_message assistant = only(
      R"({"role": "assistant", "content": null, "reasoning_content": "r", "wo_eos": true,
          "refusal": null, "annotations": [], "audio": null, "task": "title", "tool_calls": [
          {"id": "c1", "type": "function", "function": {"name": "ns::f", "arguments": "{}"}},
          {"function": {"name": "g", "arguments": {"b": 1, "a": 2}}, "namespace": "m"}]})");
  BOOST_TEST((assistant.role == chat_role::assistant));
  BOOST_TEST(assistant.content == "");
  BOOST_TEST(assistant.reasoning == "r");
  BOOST_TEST(assistant.continued);
  BOOST_TEST((assistant.task == quick_task::title));
  BOOST_TEST_REQUIRE(assistant.tool_calls.size() == 2U);
  BOOST_TEST(assistant.tool_calls[0].id == "c1");
  BOOST_TEST((assistant.tool_calls[0].name == tool_name{"ns", "f"}));
  BOOST_TEST(assistant.tool_calls[0].arguments.get<std::string>() == "{}");
  BOOST_TEST((assistant.tool_calls[1].name == tool_name{"m", "g"}));
  BOOST_TEST(assistant.tool_calls[1].arguments.dump() == R"({"b":1,"a":2})");
  const auto answered = read_messages(ordered_json::parse(R"([{"role": "assistant", "tool_calls": [
      {"id": "c1", "function": {"name": "f", "arguments": "no JSON"}}]}, {"role": "tool",
      "tool_call_id": "c1", "name": "f", "content": [{"type": "text", "text": "one"},
      {"type": "text", "text": "two"}]}])"));
  BOOST_TEST_REQUIRE(answered.has_value());
  const chat_message& tool = answered->back();
  BOOST_TEST(tool.path == "messages[1]");
  BOOST_TEST((tool.role == chat_role::tool));
  BOOST_TEST(tool.tool_call_id == "c1");
  BOOST_TEST(tool.content == "one\n\ntwo");
  const chat_message system = only(R"({"role": "system", "content": "s", "response_format":
      {"type": "object"}, "tools": [{"type": "function", "function": {"parameters": {}, "name": "f",
      "namespace": {"name": "n", "description": "d"}}}]})");
  BOOST_TEST(system.response_format->dump() == R"({"type":"object"})");
  BOOST_TEST_REQUIRE(system.tools.size() == 1U);
  BOOST_TEST((system.tools[0].name == tool_name{"n", "f"}));
  BOOST_TEST(system.tools[0].namespace_description == "d");
  BOOST_TEST(system.tools[0].function.dump() == R"({"parameters":{},"name":"f"})");
}

BOOST_AUTO_TEST_CASE(wrong_messages_are_refused_by_path) {
  const std::vector<wrong> cases = {
      {R"(1)", "not an object"},
      {R"({"content": "x"})", "role: missing, or not a string"},
      {R"({"role": "developer", "content": "x"})",
       "role: unknown 'developer'; known are system, user, assistant, tool, latest_reminder"},
      {R"({"role": "user"})", "content: missing"},
      {R"({"role": "tool", "content": null})", "content: missing"},
      {R"({"role": "user", "content": 3})", "content: must be a string or a list of blocks"},
      {R"({"role": "user", "content": []})", "content: an empty list"},
      {R"({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text"}]})",
       "content[1].text: missing, or not a string"},
      {R"({"role": "user", "content": [{"type": "image_url", "image_url": {}}]})",
       "content[0].image_url.url: missing, or not a string"},
      {R"({"role": "user", "content": [{"type": "image_url"}]})",
       "content[0].image_url: must be an object with a url, or the url"},
      {R"({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "detail":
"best"}}]})",
       "content[0].image_url.detail: beside the url only a detail of auto, low or high is known"},
      {R"({"role": "user", "content": [{"type": "image", "url": "u"}]})",
       "content[0].type: unknown; only blocks of type text and image_url are supported"},
      {R"({"role": "user", "content": [{"type": "audio"}]})",
       "content[0].type: unknown; only blocks of type text and image_url are supported"},
      {R"({"role": "user", "content": "x", "temperature": 1})", "temperature: unknown key"},
      {R"({"role": "user", "content": "x", "task": "sing"})",
       "task: unknown; known are action, query, authority, domain, title, read_url"},
      {R"({"role": "user", "content": "x", "task": true})",
       "task: unknown; known are action, query, authority, domain, title, read_url"},
      {R"({"role": "assistant", "content": "x", "wo_eos": 1})", "wo_eos: must be true or false"},
      {R"({"role": "assistant", "reasoning_content": []})", "reasoning_content: not a string"},
      {R"({"role": "assistant", "tool_calls": {}})", "tool_calls: not a list"},
      {R"({"role": "assistant", "tool_calls": [{"id": "c"}]})",
       "tool_calls[0].function: missing, or not an object"},
      {R"({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]})",
       "tool_calls[0].function.arguments: must be a string or an object"},
      {R"({"role": "assistant", "tool_calls": [{"function": {"name": "", "arguments": ""}}]})",
       "tool_calls[0].function.name: " + name_rule},
      {R"({"role": "system", "content": "", "response_format": "json"})",
       "response_format: not an object"},
      {R"({"role": "system", "content": "", "tools": [{"type": "web_search"}]})",
       "tools[0].type: only tools of type function are supported"},
  };
  for (const wrong& one : cases)
    BOOST_TEST(refusal_of_second(one.message) == one.reason, one.message);
  BOOST_TEST(refusal(R"({"role": "user"})").message == "messages: not a list");
}

BOOST_AUTO_TEST_CASE(namespaces_must_not_contradict) {
  BOOST_TEST(
      (read_tools(ordered_json::parse(R"([{"function": {"name": "a::f"}, "namespace": "a"}])"))
           ->at(0)
           .name == tool_name{"a", "f"}));
  const std::vector<wrong> cases = {
      {R"({"function": {"name": "a::f"}, "namespace": "b"})",
       "tools[0].function.name: 'a::f' contradicts the namespace 'b'"},
      {R"({"function": {"name": "f", "namespace": "a"}, "namespace": "b"})",
       "tools[0].namespace: the function's contradicts it"},
      {R"({"function": {"name": "f"}, "namespace": "a::b"})",
       "tools[0].namespace: " + namespace_rule},
      {R"({"function": {"name": "f", "namespace": ""}})",
       "tools[0].function.namespace: " + namespace_rule},
      {R"({"function": {"name": "f"}, "namespace": {"description": "d"}})",
       "tools[0].namespace.name: " + namespace_rule},
      {R"({"function": {"name": "f"}, "namespace": {"name": "n", "description": 1}})",
       "tools[0].namespace.description: not a string"},
      {R"({"function": {"name": "f"}, "namespace": 1})",
       "tools[0].namespace: " + namespace_rule + ", or an object with name and description"},
  };
  for (const wrong& one : cases)
    BOOST_TEST(refusal_of_tools(one.message) == one.reason, one.message);
}

BOOST_AUTO_TEST_CASE(names_of_tools_are_words) {
  const std::string longest(64, 'x');
  const auto tool = [](const std::string& name) {
    return ordered_json{{"function", {{"name", name}}}}.dump();
  };
  for (const std::string& name :
       {std::string("look_up-2"), std::string("_"), longest, longest + "::" + longest})
    BOOST_TEST(read_tools(ordered_json::parse("[" + tool(name) + "]"))->at(0).name.qualified() ==
               name);
  const std::vector<std::string> cases = {"",
                                          "a b",
                                          " a",
                                          "a\n",
                                          "a\nb",
                                          "a\"b",
                                          "a'b",
                                          "a.b",
                                          "a/b",
                                          "a:b",
                                          "\x7f",
                                          "\x01",
                                          std::string("a\0b", 3),
                                          "caf\xc3\xa9",
                                          "<｜end▁of▁sentence｜>",
                                          longest + "x",
                                          "::f",
                                          "a::",
                                          "a::b::f",
                                          "a b::f",
                                          longest + "x::f"};
  for (const std::string& name : cases) {
    BOOST_TEST(
        refusal_of_tools(tool("look") + "," + tool(name)) == "tools[1].function.name: " + name_rule,
        name);
    const ordered_json call{{"function", {{"name", name}, {"arguments", "{}"}}}};
    const ordered_json answer{{"role", "assistant"}, {"tool_calls", {call}}};
    BOOST_TEST(refusal_of_second(answer.dump()) == "tool_calls[0].function.name: " + name_rule,
               name);
  }
  BOOST_TEST(refusal_of_tools(R"({"function": {"name": 3}})") ==
             "tools[0].function.name: missing, or not a string");
  BOOST_TEST(refusal_of_tools(R"({"function": {"name": "a"}}, {"function": {"name": "b"}},
                                 {"function": {"name": "a"}})") ==
             "tools[2].function.name: another tool is called 'a' already");
  BOOST_TEST(refusal_of_tools(R"({"function": {"name": "n::a"}},
                                 {"function": {"name": "a"}, "namespace": "n"})") ==
             "tools[1].function.name: another tool is called 'n::a' already");
  BOOST_TEST(read_tools(ordered_json::parse(R"([{"function": {"name": "n::a"}},
                                                {"function": {"name": "a"}}])"))
                 .has_value());
}

BOOST_AUTO_TEST_CASE(results_answer_one_call_each) {
  const auto called = [](const std::string& ids) {
    std::string calls;
    for (const char id : ids)
      calls += std::string(calls.empty() ? "" : ",") + R"({"id": ")" + id +
               R"(", "function": {"name": "f", "arguments": "{}"}})";
    return R"({"role": "assistant", "tool_calls": [)" + calls + "]}";
  };
  const auto answer = [](const std::string& id) {
    return R"({"role": "tool", "content": "r", "tool_call_id": ")" + id + "\"}";
  };
  const std::string user = R"({"role": "user", "content": "u"})";
  const std::string assistant = R"({"role": "assistant", "content": "a"})";
  const auto list = [](const std::vector<std::string>& messages) {
    std::string out;
    for (const std::string& message : messages) out += (out.empty() ? "[" : ",") + message;
    return out + "]";
  };
  for (const std::vector<std::string>& sound :
       {std::vector{user, called("ab"), answer("b"), answer("a")},
        // Users may speak in between, calls may stay without results and be called alike later.
        {user, called("ab"), user, answer("b"), user, called("a"), answer("a"), assistant}})
    BOOST_TEST(read_messages(ordered_json::parse(list(sound))).has_value(), list(sound));
  const std::string missing = "missing; it must be the id of the call that this is the result of";
  const std::string unknown = "no call of the last assistant's message before has this id";
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{user, called("a"), R"({"role": "tool", "content": "r"})"}, missing},
      {{user, called("a"), answer("")}, missing},
      {{user, user, answer("a")}, unknown},
      {{user, called("a"), answer("b")}, unknown},
      {{user, called("a"), answer("a"), assistant, answer("a")}, unknown},
      {{user, called("a"), assistant, answer("a")}, unknown},
      {{user, called("a"), answer("a"), called("b"), answer("a")}, unknown},
      {{user, called("ab"), answer("a"), answer("a")}, "the call has a result already"},
  };
  for (const auto& [messages, reason] : cases) {
    const member_error told = refusal(list(messages));
    const std::string path = "messages[" + std::to_string(messages.size() - 1) + "].tool_call_id";
    BOOST_TEST(told.path == path, list(messages));
    BOOST_TEST(told.message == path + ": " + reason, list(messages));
  }
  BOOST_TEST(refusal(list({user, called("aba")})).message ==
             "messages[1].tool_calls[2].id: another call of the message has the same");
}

BOOST_AUTO_TEST_CASE(parameters_of_tools_are_schemas) {
  const auto read = [](const std::string& parameters) {
    return read_tools(ordered_json::parse(
        R"([{"type": "function", "function": {"name": "f", "parameters": )" + parameters + "}}]"));
  };
  for (const char* sound :
       {"null", "{}", R"({"type": "object"})",
        R"({"type": "object", "properties": {"city": {"type": "string", "description": "d"},
            "days": {"type": ["integer", "null"], "minimum": 1, "enum": [1, 2]},
            "any": true, "list": {"type": "array", "items": {"$ref": "#/$defs/one"}}},
            "required": ["city"], "additionalProperties": false, "$defs": {"one": {"anyOf":
            [{"type": "number"}, {"not": {}}]}}, "x-ours": 3})"})
    BOOST_TEST(read(sound).has_value(), sound);
  const std::vector<wrong> cases = {
      {"3", "parameters: must be a JSON Schema, an object"},
      {"[]", "parameters: must be a JSON Schema, an object"},
      {"true", "parameters: must be a JSON Schema, an object"},
      {R"({"type": "array"})",
       "parameters.type: must be \"object\": a tool takes named parameters"},
      {R"({"properties": ["a"]})", "parameters.properties: must be an object of schemas"},
      {R"({"properties": {"a": "string"}})",
       "parameters.properties.a: must be a JSON Schema: an object, true or false"},
      {R"({"properties": {"a": {"type": "text"}}})",
       "parameters.properties.a.type: must be null, boolean, object, array, number, integer or "
       "string, or a list of these"},
      {R"({"properties": {"a": {"items": 1}}})",
       "parameters.properties.a.items: must be a JSON Schema: an object, true or false"},
      {R"({"anyOf": []})", "parameters.anyOf: must be a list of schemas"},
      {R"({"required": "a"})", "parameters.required: must be a list of names"},
      {R"({"enum": "a"})", "parameters.enum: must be a list"},
      {R"({"description": 1})", "parameters.description: must be a text"},
      {R"({"properties": {"a": {"$ref": 5}}})", "parameters.properties.a.$ref: must be a text"},
      {R"({"properties": {"a": {"pattern": []}}})",
       "parameters.properties.a.pattern: must be a text"},
      {R"({"items": {"maximum": "9"}})", "parameters.items.maximum: must be a number"},
      {R"({"items": {"minLength": -1}})",
       "parameters.items.minLength: must be a whole number, at least 0"},
      {R"({"items": {"maxItems": 1.5}})",
       "parameters.items.maxItems: must be a whole number, at least 0"},
      {R"({"items": {"uniqueItems": 1}})", "parameters.items.uniqueItems: must be true or false"},
  };
  for (const wrong& one : cases) {
    const auto tools = read(one.message);
    BOOST_REQUIRE_MESSAGE(!tools.has_value(), one.message);
    BOOST_TEST(tools.error().message == "tools[0].function." + one.reason);
    BOOST_TEST(tools.error().message.starts_with(tools.error().path + ": "));
  }
}

BOOST_AUTO_TEST_CASE(deep_nesting_is_refused_before_it_is_copied) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::string text =
      refusal(
          R"([{"role": "system", "content": "", "tools": [{"function": {"name": "f", "parameters": )" +
          deep + "}}]}]")
          .message;
  BOOST_TEST(text == "messages: nested too deeply, at most 128 levels are supported");
}

BOOST_AUTO_TEST_CASE(efforts_are_words_or_whole_numbers) {
  const auto effort = [](const char* text) { return read_effort(ordered_json::parse(text)); };
  BOOST_TEST(effort("null").value() == 75U);
  BOOST_TEST(effort("\"low\"").value() == 50U);
  BOOST_TEST(effort("\"high\"").value() == 75U);
  BOOST_TEST(effort("\"max\"").value() == 100U);
  BOOST_TEST(effort("1").value() == 1U);
  BOOST_TEST(effort("100").value() == 100U);
  for (const char* text : {"0", "-1", "101", "18446744073709551615", "1.0", "1.5", "true", "false",
                           "\"medium\"", "\"75\"", "\"\"", "[]", "{}"})
    BOOST_TEST((effort(text).error().code == errc::invalid_argument), text);
  BOOST_TEST(parse_effort("75").value() == 75U);
  BOOST_TEST(parse_effort("7 5").error().message ==
             "reasoning effort '7 5': must be low, high, max or a whole number from 1 to 100");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
