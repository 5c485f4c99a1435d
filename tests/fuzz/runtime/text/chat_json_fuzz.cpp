// The input is the message list of a request. What is accepted must give prompts whose control
// pieces are control strings of the template and whose texts are UTF-8 and never in two pieces,
// with and without a context.
#include "runtime/text/chat_json.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "kernels/base/check.hpp"
#include "runtime/text/prompt_encoding.hpp"
#include "runtime/text/utf8.hpp"
#include "tests/support/fuzz_driver.hpp"

namespace cedar::test {

fuzz_material fuzz_corpus() {
  return {
      {R"([{"role":"system","content":"Use tools.","tools":[{"type":"function","function":{"name":
"lookup","description":"d","parameters":{"type":"object"}},"namespace":{"name":"n","description":
"e"}}],"response_format":{"type":"object"}},{"role":"user","content":[{"type":"text","text":"a"}]},
{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[{"id":"c1","function":{
"name":"n::lookup","arguments":"{\"q\":\"\\u00e9\",\"n\":1.50}"}},{"id":"c2","function":{"name":"f",
"arguments":{"a":[1,-2e30,null]}}}]},{"role":"tool","tool_call_id":"c2","content":"two"},
{"role":"tool","tool_call_id":"c1","content":"one"},{"role":"user","content":"go on"}])",
       R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"a","detail":"low"}},
{"type":"text","text":"<｜deepseek_image｜>"},{"type":"image_url","image_url":"b"}]}])",
       R"([{"role":"user","content":"x","task":"action"},{"role":"assistant","content":"y"},
{"role":"latest_reminder","content":"noon"},{"role":"system","content":"b"},
{"role":"assistant","content":"z","wo_eos":true}])"},
      {R"({"role":"user","content":"<think>"},)",
       R"({"role":"tool","tool_call_id":"c1","content":"t"},)",
       R"({"role":"system","content":""},)",
       R"({"role":"assistant","content":"b"},)",
       R"("task":"title",)",
       R"("task":"query",)",
       R"("wo_eos":true,)",
       R"("tool_calls":[],)",
       R"("arguments":"\"{}\"")",
       "::",
       "null",
       "true",
       "1e400",
       "18446744073709551616",
       "[[",
       "]]",
       "{}",
       "\\ud83c\\udf0d",
       "\\u0000",
       "\"namespace\":\"m\",",
       "assistant",
       "\"\""}};
}

}  // namespace cedar::test

namespace {

using namespace cedar::text;

constexpr std::array<std::string_view, 16> controls = {"<｜begin▁of▁sentence｜>",
                                                       "<｜end▁of▁sentence｜>",
                                                       "<｜System｜>",
                                                       "<｜User｜>",
                                                       "<｜Assistant｜>",
                                                       "<｜latest_reminder｜>",
                                                       "<think>",
                                                       "</think>",
                                                       "｜DSML｜",
                                                       "<｜action｜>",
                                                       "<｜query｜>",
                                                       "<｜authority｜>",
                                                       "<｜domain｜>",
                                                       "<｜title｜>",
                                                       "<｜read_url｜>",
                                                       "<｜deepseek_image｜>"};

void check_pieces(const std::vector<prompt_piece>& pieces) {
  bool after_text = false;
  for (const prompt_piece& piece : pieces) {
    CEDAR_ASSERT(!piece.text.empty(), "an empty piece");
    CEDAR_ASSERT(!cedar::text::first_invalid_utf8(piece.text), "not UTF-8");
    const bool known = std::find(controls.begin(), controls.end(), piece.text) != controls.end();
    CEDAR_ASSERT(!piece.control || known, piece.text);
    CEDAR_ASSERT(piece.control || !after_text, "text in two pieces");
    after_text = !piece.control;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto list = nlohmann::ordered_json::parse(data, data + size, nullptr, false);
  if (list.is_discarded()) return 0;
  const auto messages = read_messages(list);
  if (!messages) {
    CEDAR_ASSERT(!messages.error().message.empty(), "no reason");
    return 0;
  }
  for (const chat_mode mode : {chat_mode::chat, chat_mode::thinking}) {
    prompt_options options{.mode = mode};
    const auto whole = encode_prompt(*messages, options);
    if (!whole) {
      CEDAR_ASSERT(!whole.error().message.empty(), "no reason");
      continue;
    }
    check_pieces(*whole);
    const auto places = std::ranges::count_if(*whole, [](const prompt_piece& piece) {
      return piece.control && piece.text == controls.back();
    });
    CEDAR_ASSERT(places == std::ssize(images_of(*messages, options)), "places and images");
    CEDAR_ASSERT(whole->front().text == "<｜begin▁of▁sentence｜>", "no beginning");
    options.context_messages = messages->size() - 1;
    const auto rest = encode_prompt(*messages, options);
    if (rest) check_pieces(*rest);
  }
  return 0;
}
