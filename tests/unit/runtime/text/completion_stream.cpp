// Goal: an answer that comes in pieces gives what it gives as a whole, and nothing half is shown.
// Method: the recorded answers and broken ones, cut everywhere; the strict parser where it accepts.
#include "runtime/text/completion_stream.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "runtime/text/completion.hpp"
#include "tests/unit/runtime/text/fixtures.hpp"

namespace cedar::text {
namespace {

constexpr std::uint64_t seed = 7;
const std::string end = "<｜end▁of▁sentence｜>";
const std::vector<std::string> controls = {"<｜begin▁of▁sentence｜>", end, "<think>", "</think>",
                                           "｜DSML｜"};

struct collected {
  completion all;
  std::vector<std::size_t> content_cuts;  ///< where deltas of content ended
  std::vector<bool> ended;  ///< by call
  bool cut_off = false;

  bool operator==(const collected& other) const {
    return all.reasoning == other.all.reasoning && all.content == other.all.content &&
           all.tool_calls == other.all.tool_calls && ended == other.ended &&
           cut_off == other.cut_off;
  }
};

void add(collected& to, const std::vector<completion_delta>& deltas) {
  for (const completion_delta& delta : deltas) {
    BOOST_REQUIRE(!first_invalid_utf8(delta.text));
    if (delta.kind == delta_kind::call_begin) {
      BOOST_REQUIRE_EQUAL(delta.call, to.all.tool_calls.size());
      to.all.tool_calls.push_back({delta.name, ""});
      to.ended.push_back(false);
      continue;
    }
    if (delta.kind == delta_kind::call_end) {
      to.ended.at(delta.call) = true;
      continue;
    }
    BOOST_REQUIRE(!delta.text.empty());
    if (delta.kind == delta_kind::reasoning) to.all.reasoning += delta.text;
    if (delta.kind == delta_kind::content) to.all.content += delta.text;
    if (delta.kind == delta_kind::call_arguments) {
      BOOST_REQUIRE(!to.ended.at(delta.call));
      to.all.tool_calls.at(delta.call).arguments += delta.text;
    }
    to.content_cuts.push_back(to.all.content.size());
  }
}

/// What the pieces of `text` between `cuts` (ascending) give; checks what holds of every answer.
collected streamed(std::string_view text, chat_mode mode, const std::vector<std::size_t>& cuts) {
  completion_stream stream(mode);
  collected out;
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    add(out, stream.push(text.substr(begin, cut - begin)));
    begin = cut;
  }
  add(out, stream.push(text.substr(begin)));
  add(out, stream.finish());
  out.cut_off = stream.cut_off();
  for (std::size_t i = 0; i < out.ended.size(); ++i) {
    BOOST_REQUIRE(out.ended[i]);
    const auto arguments = nlohmann::json::parse(out.all.tool_calls[i].arguments, nullptr, false);
    BOOST_REQUIRE_MESSAGE(arguments.is_object(), out.all.tool_calls[i].arguments);
  }
  for (const std::string& control : controls)
    for (std::size_t at = 0; (at = out.all.content.find(control, at)) != std::string::npos;
         at += control.size())
      for (const std::size_t cut : out.content_cuts)
        BOOST_REQUIRE(cut <= at || cut >= at + control.size());
  return out;
}

collected streamed(std::string_view text, chat_mode mode = chat_mode::chat) {
  return streamed(text, mode, {});
}

/// All cuts in two, byte by byte, and 200 random sets of cuts, against the whole; the whole against
/// the strict parser.
void check_all_cuts(const std::string& text, chat_mode mode) {
  const collected whole = streamed(text, mode, {});
  std::vector<std::size_t> every;
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    BOOST_REQUIRE((streamed(text, mode, {cut}) == whole));
    every.push_back(cut);
  }
  BOOST_REQUIRE((streamed(text, mode, every) == whole));
  std::mt19937_64 random(text.size());
  for (int run = 0; run < 200; ++run) {
    std::vector<std::size_t> cuts;
    for (std::size_t cut = 1; cut < text.size(); ++cut)
      if (random() % (2 + static_cast<std::uint64_t>(run) % 30) == 0) cuts.push_back(cut);
    BOOST_REQUIRE((streamed(text, mode, cuts) == whole));
  }
  const auto strict = parse_completion(text, mode);
  if (!strict) return;
  BOOST_TEST(whole.all.reasoning == strict->reasoning);
  BOOST_TEST(whole.all.content == strict->content);
  BOOST_TEST((whole.all.tool_calls == strict->tool_calls));
  BOOST_TEST(!whole.cut_off);
}

std::vector<std::string> recorded_answers() {
  const auto vectors = nlohmann::json::parse(
      read_test_file(CEDAR_TEST_DATA "/released/prompt_encoding_vectors.json"));
  std::vector<std::string> out;
  for (const auto& one : vectors.at("parse")) out.push_back(one.at("text"));
  return out;
}

const std::string call_head = "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n";
const std::string call_tail = "</｜DSML｜ invoke>\n</｜DSML｜ calls>";

std::string parameter(const std::string& name, const std::string& flag, const std::string& value) {
  return "<｜DSML｜ parameter name=\"" + name + "\" string=\"" + flag + "\">" + value +
         "</｜DSML｜ parameter>\n";
}

BOOST_AUTO_TEST_SUITE(answers_in_the_making)

BOOST_AUTO_TEST_CASE(recorded_answers_do_not_depend_on_cuts) {
  for (const std::string& text : recorded_answers())
    for (const chat_mode mode : {chat_mode::chat, chat_mode::thinking}) BOOST_TEST_CONTEXT(text) {
        check_all_cuts(text, mode);
      }
}

BOOST_AUTO_TEST_CASE(random_mixtures_do_not_depend_on_cuts) {
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937_64 random(seed);
  const std::vector<std::string> parts = {"\n",
                                          "\n\n",
                                          "a",
                                          "é😀",
                                          "<",
                                          "</",
                                          "｜",
                                          "\"",
                                          "{}",
                                          call_head,
                                          call_tail,
                                          end,
                                          "<think>",
                                          "</think>",
                                          "｜DSML｜",
                                          "<｜DSML｜",
                                          "</｜DSML｜ parameter>",
                                          "</｜DSML｜ invoke>\n",
                                          "<｜DSML｜ invoke name=\"g::h\">",
                                          "<｜DSML｜ calls>",
                                          parameter("a", "true", "x\ny"),
                                          parameter("b", "false", "1"),
                                          "<｜DSML｜ parameter name=\"c\" string=\"true\">"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (std::uint64_t i = random() % 10; i > 0; --i) text += parts[random() % parts.size()];
    BOOST_TEST_CONTEXT(text)
    check_all_cuts(text, random() % 2 ? chat_mode::chat : chat_mode::thinking);
  }
}

BOOST_AUTO_TEST_CASE(text_appears_as_soon_as_it_is_certain) {
  completion_stream stream(chat_mode::thinking);
  const auto pushed = [&](std::string_view text) {
    std::string out;
    for (const completion_delta& delta : stream.push(text)) out += delta.text + "|";
    return out;
  };
  BOOST_TEST(pushed("why") == "why|");
  BOOST_TEST(pushed(" a <") == " a |");
  BOOST_TEST(pushed("/b") == "</b|");
  BOOST_TEST(pushed("</think>because\n") == "because|");
  BOOST_TEST(pushed("\n<｜DSML｜") == "");
  BOOST_TEST(pushed(" calls>\n<｜DSML｜ invoke name=\"f") == "");
  BOOST_TEST(pushed("\">\n") == "|{|");
  BOOST_TEST(pushed("<｜DSML｜ parameter name=\"k\" string=\"true\">some \"te") ==
             "\"k\": \"some \\\"te|");
  BOOST_TEST(pushed("xt\n<") == "xt\\n|");
  BOOST_TEST(pushed("/｜DSML｜ parameter>") == "\"|");
  BOOST_TEST(pushed("\n" + call_tail) == "}||");
  BOOST_TEST(pushed("\n") == "");
  BOOST_TEST(pushed(end + "more") == "");
  BOOST_TEST(stream.finish().empty());
  BOOST_TEST(!stream.cut_off());
}

BOOST_AUTO_TEST_CASE(loose_calls_are_understood) {
  const collected loose = streamed(
      "a\n<｜DSML｜ calls><｜DSML｜ invoke name=\"f\"> " + parameter("j", "false", "not json") +
      parameter("j", "true", "again") + "<｜DSML｜ parameter name=\"k\">7</｜DSML｜ parameter>" +
      "<｜DSML｜ invoke name=\"n::g\"></｜DSML｜ calls> \n b" + end);
  BOOST_TEST(loose.all.content == "ab");
  BOOST_TEST_REQUIRE(loose.all.tool_calls.size() == 2U);
  BOOST_TEST(
      (loose.all.tool_calls[0] == completed_call{{"", "f"}, R"({"j": "not json", "k": 7})"}));
  BOOST_TEST((loose.all.tool_calls[1] == completed_call{{"n", "g"}, "{}"}));
  BOOST_TEST(!loose.cut_off);
}

BOOST_AUTO_TEST_CASE(calls_inside_the_reasoning_end_it) {
  const collected read = streamed("hm\n\n" + call_head + call_tail + end, chat_mode::thinking);
  BOOST_TEST(read.all.reasoning == "hm");
  BOOST_TEST(read.all.tool_calls.size() == 1U);
}

BOOST_AUTO_TEST_CASE(control_strings_out_of_place_stay_text) {
  const std::string text = "a</think>b<think>｜DSML｜<｜DSML｜tool_calls>c<｜begin▁of▁sentence｜>";
  BOOST_TEST(streamed(text).all.content == text);
}

BOOST_AUTO_TEST_CASE(an_end_anywhere_leaves_whole_arguments) {
  const std::string text = "r</think>c\n\n" + call_head + parameter("s", "true", "v") +
                           parameter("n", "false", "[1]") + call_tail;
  const std::size_t content = text.find("c\n");
  const std::size_t block = text.find(call_head);
  for (std::size_t size = 0; size < text.size(); ++size) {
    for (const std::string& stop : {std::string(), end}) {
      const collected read = streamed(text.substr(0, size) + stop, chat_mode::thinking);
      if (size < content) BOOST_TEST(read.cut_off, size);
      if (size >= content && size <= block) BOOST_TEST(!read.cut_off, size);
      if (size >= block + std::string_view("<｜DSML｜ calls>").size())
        BOOST_TEST(read.cut_off, size);
    }
  }
  const std::size_t value = text.find("[1]");
  BOOST_TEST(streamed(text.substr(0, value + 2), chat_mode::thinking).all.tool_calls[0].arguments ==
             R"({"s": "v", "n": "[1"})");
  BOOST_TEST(
      streamed(text.substr(0, block + std::string_view("<｜DSML｜ ca").size()), chat_mode::thinking)
          .all.content == "c");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
