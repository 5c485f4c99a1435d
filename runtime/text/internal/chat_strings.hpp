// The fixed strings of DeepSeek-V4.1's chat format. Source: the released encoder; the vectors in
// tests/data/released pin every one.
#pragma once

#include <array>
#include <string_view>

namespace cedar::text {

/// Strings that are one token each.
namespace control {
inline constexpr std::string_view begin_of_sequence = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view end_of_sequence = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view system = "<｜System｜>";
inline constexpr std::string_view user = "<｜User｜>";
inline constexpr std::string_view assistant = "<｜Assistant｜>";
inline constexpr std::string_view latest_reminder = "<｜latest_reminder｜>";
inline constexpr std::string_view think_begin = "<think>";
inline constexpr std::string_view think_end = "</think>";
inline constexpr std::string_view image = "<｜deepseek_image｜>";
inline constexpr std::string_view dsml = "｜DSML｜";

/// Those that must not occur in the reasoning and the content of a completion.
inline constexpr std::array<std::string_view, 5> of_completions = {
    begin_of_sequence, end_of_sequence, think_begin, think_end, dsml};
}  // namespace control

/// Markup of tool calls. The space after the token is part of the format.
namespace markup {
inline constexpr std::string_view calls_begin = "<｜DSML｜ calls>";
inline constexpr std::string_view calls_end = "</｜DSML｜ calls>";
inline constexpr std::string_view invoke_begin = "<｜DSML｜ invoke name=\"";
inline constexpr std::string_view invoke_end = "</｜DSML｜ invoke>";
inline constexpr std::string_view parameter_begin = "<｜DSML｜ parameter name=\"";
inline constexpr std::string_view parameter_end = "</｜DSML｜ parameter>";
inline constexpr std::string_view string_attribute = "\" string=\"";
inline constexpr std::string_view head_end = "\">";
inline constexpr std::string_view open_tag = "<｜DSML｜";
inline constexpr std::string_view close_tag = "</｜DSML｜";
}  // namespace markup

/// What the template says in words.
namespace sentence {
inline constexpr std::string_view tools_head =
    R"(## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜ calls>" block like the following:

<｜DSML｜ calls>
<｜DSML｜ invoke name="$TOOL_NAME">
<｜DSML｜ parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜ parameter>
...
</｜DSML｜ invoke>
<｜DSML｜ invoke name="$TOOL_NAME2">
...
</｜DSML｜ invoke>
</｜DSML｜ calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

)";
inline constexpr std::string_view tools_tail =
    "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool "
    "calls.\n";
inline constexpr std::string_view response_format_head =
    "## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n";
}  // namespace sentence

inline constexpr std::string_view blank_line = "\n\n";
/// The parameter that holds arguments which are no JSON object.
inline constexpr std::string_view raw_arguments_key = "arguments";

}  // namespace cedar::text
