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
std::string refusal(const std::string& list) {
  const auto read = read_messages(ordered_json::parse(list));
  BOOST_REQUIRE_MESSAGE(!read.has_value(), list);
  BOOST_TEST((read.error().code == errc::invalid_argument));
  return read.error().message;
}

std::string refusal_of_second(const std::string& message) {
  const std::string text = refusal(R"([{"role": "user", "content": "a"}, )" + message + "]");
  BOOST_TEST(text.starts_with("messages[1]: "), text);
  return text.substr(text.find(' ') + 1);
}

struct wrong {
  const char* message;
  const char* reason;
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
  const chat_message tool = only(R"({"role": "tool", "tool_call_id": "c1", "name": "f", "content":
      [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]})");
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
       "content[1]: text: missing, or not a string"},
      {R"({"role": "user", "content": [{"type": "image_url", "image_url": {}}]})",
       "content[0]: image_url: must be an object with a url, or the url"},
      {R"({"role": "user", "content": [{"type": "image_url"}]})",
       "content[0]: image_url: must be an object with a url, or the url"},
      {R"({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "detail":
"best"}}]})",
       "content[0]: image_url.detail: beside the url only a detail of auto, low or high is known"},
      {R"({"role": "user", "content": [{"type": "image", "url": "u"}]})",
       "content[0]: unknown type; only blocks of type text and image_url are supported"},
      {R"({"role": "user", "content": [{"type": "audio"}]})",
       "content[0]: unknown type; only blocks of type text and image_url are supported"},
      {R"({"role": "user", "content": "x", "temperature": 1})", "unknown key 'temperature'"},
      {R"({"role": "user", "content": "x", "task": "sing"})",
       "task: unknown; known are action, query, authority, domain, title, read_url"},
      {R"({"role": "user", "content": "x", "task": true})",
       "task: unknown; known are action, query, authority, domain, title, read_url"},
      {R"({"role": "assistant", "content": "x", "wo_eos": 1})", "wo_eos: must be true or false"},
      {R"({"role": "assistant", "reasoning_content": []})", "reasoning_content: not a string"},
      {R"({"role": "assistant", "tool_calls": {}})", "tool_calls: not a list"},
      {R"({"role": "assistant", "tool_calls": [{"id": "c"}]})",
       "tool_calls[0]: function: missing, or not an object"},
      {R"({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]})",
       "tool_calls[0]: function.arguments: must be a string or an object"},
      {R"({"role": "assistant", "tool_calls": [{"function": {"name": "", "arguments": ""}}]})",
       "tool_calls[0]: function: tool name '': must be NAME or NAMESPACE::NAME"},
      {R"({"role": "system", "content": "", "response_format": "json"})",
       "response_format: not an object"},
      {R"({"role": "system", "content": "", "tools": [{"type": "web_search"}]})",
       "tools[0]: type: only tools of type function are supported"},
  };
  for (const wrong& one : cases)
    BOOST_TEST(refusal_of_second(one.message) == one.reason, one.message);
  BOOST_TEST(refusal(R"({"role": "user"})") == "messages: not a list");
}

BOOST_AUTO_TEST_CASE(namespaces_must_not_contradict) {
  const auto read = [](const std::string& tool) {
    return read_tools(ordered_json::parse("[" + tool + "]"));
  };
  BOOST_TEST((read(R"({"function": {"name": "a::f"}, "namespace": "a"})")->at(0).name ==
              tool_name{"a", "f"}));
  const std::vector<wrong> cases = {
      {R"({"function": {"name": "a::f"}, "namespace": "b"})",
       "tools[0]: function: name: 'a::f' contradicts namespace 'b'"},
      {R"({"function": {"name": "a::b::f"}})",
       "tools[0]: function: tool name 'a::b::f': must be NAME or NAMESPACE::NAME"},
      {R"({"function": {"name": "f"}, "namespace": "a::b"})",
       "tools[0]: function: tool name 'a::b::f': must be NAME or NAMESPACE::NAME"},
      {R"({"function": {"name": "f", "namespace": "a"}, "namespace": "b"})",
       "tools[0]: namespace: the function's contradicts it"},
      {R"({"function": {"name": "f"}, "namespace": {"description": "d"}})",
       "tools[0]: namespace: must be a name, or an object with name and description"},
      {R"({"function": {"name": "::f"}})",
       "tools[0]: function: tool name '::f': must be NAME or NAMESPACE::NAME"},
  };
  for (const wrong& one : cases) {
    const auto tools = read(one.message);
    BOOST_REQUIRE_MESSAGE(!tools.has_value(), one.message);
    BOOST_TEST(tools.error().message == one.reason);
  }
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
    BOOST_TEST(tools.error().message == std::string("tools[0]: function: ") + one.reason);
  }
}

BOOST_AUTO_TEST_CASE(deep_nesting_is_refused_before_it_is_copied) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::string text = refusal(
      R"([{"role": "system", "content": "", "tools": [{"function": {"name": "f", "parameters": )" +
      deep + "}}]}]");
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
