// The first byte chooses the mode, the second where the answer that follows is cut into pieces. The
// pieces must give what the whole gives; arguments must be JSON objects; and where the strict
// parser accepts, both parsers must agree.
#include "runtime/text/completion.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "kernels/base/check.hpp"
#include "runtime/text/completion_stream.hpp"
#include "tests/support/fuzz_driver.hpp"

namespace cedar::test {

fuzz_material fuzz_corpus() {
  const std::string call =
      "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"lookup\">\n"
      "<｜DSML｜ parameter name=\"query\" string=\"true\">va\"lue</｜DSML｜ parameter>\n"
      "<｜DSML｜ parameter name=\"limit\" string=\"false\">[2, {}]</｜DSML｜ parameter>\n"
      "</｜DSML｜ invoke>\n</｜DSML｜ calls>";
  const std::string end = "<｜end▁of▁sentence｜>";
  return {
      {"\1\3  reason  </think>summary" + call + end, std::string("\0\5", 2) + call + end,
       "\1\1why</think>because" + end, std::string("\0\2", 2) + "because \xF0\x9F\x8C\x8D" + end,
       std::string("\0\7", 2) + "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"now\">\n\n" +
           "</｜DSML｜ invoke>\n</｜DSML｜ calls>" + end},
      {"<think>",
       "</think>",
       "｜DSML｜",
       "<｜DSML｜",
       "</｜DSML｜",
       " calls>",
       " invoke>",
       " invoke name=\"",
       " parameter name=\"",
       "\" string=\"",
       "true",
       "false",
       "\">",
       "\n",
       "\n\n",
       end,
       "::",
       "{",
       "}",
       "\"",
       "\\",
       "\xEF\xBD",
       "\xFF"}};
}

}  // namespace cedar::test

namespace {

using namespace cedar::text;

struct collected {
  completion all;
  bool cut_off = false;
};

collected streamed(std::string_view text, chat_mode mode, std::size_t piece_bytes) {
  collected out;
  completion_stream stream(mode);
  const auto add = [&](const std::vector<completion_delta>& deltas) {
    for (const completion_delta& delta : deltas) {
      if (delta.kind == delta_kind::call_begin) out.all.tool_calls.push_back({delta.name, ""});
      if (delta.kind == delta_kind::reasoning) out.all.reasoning += delta.text;
      if (delta.kind == delta_kind::content) out.all.content += delta.text;
      if (delta.kind == delta_kind::call_arguments)
        out.all.tool_calls.at(delta.call).arguments += delta.text;
    }
  };
  for (std::size_t at = 0; at < text.size(); at += piece_bytes)
    add(stream.push(text.substr(at, piece_bytes)));
  add(stream.finish());
  out.cut_off = stream.cut_off();
  return out;
}

void check_same(const completion& left, const completion& right) {
  CEDAR_ASSERT(left.reasoning == right.reasoning, "other reasoning");
  CEDAR_ASSERT(left.content == right.content, "other content");
  CEDAR_ASSERT(left.tool_calls == right.tool_calls, "other calls");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const chat_mode mode = data[0] % 2 == 1 ? chat_mode::thinking : chat_mode::chat;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const collected whole = streamed(text, mode, size);
  const collected pieces = streamed(text, mode, std::size_t{data[1]} % 32 + 1);
  check_same(whole.all, pieces.all);
  CEDAR_ASSERT(whole.cut_off == pieces.cut_off, "another end");
  for (const completed_call& call : whole.all.tool_calls)
    CEDAR_ASSERT(nlohmann::json::parse(call.arguments, nullptr, false).is_object(), call.arguments);
  const auto strict = parse_completion(text, mode);
  if (!strict) {
    CEDAR_ASSERT(!strict.error().message.empty(), "no reason");
  } else if (!first_invalid_utf8(text)) {
    check_same(whole.all, *strict);
    CEDAR_ASSERT(!whole.cut_off, "the strict parser saw an end");
  }
  return 0;
}
