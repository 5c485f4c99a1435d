#include "tests/unit/runtime/text/fixtures.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>

#include "runtime/text/internal/byte_alphabet.hpp"

namespace cedar::text {
namespace {

void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

}  // namespace

nlohmann::json minimal_document() {
  using nlohmann::json;
  json vocabulary = json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocabulary[to_byte_alphabet(std::string(1, static_cast<char>(byte)))] = byte;
  vocabulary["aa"] = 256;
  vocabulary["aaa"] = 257;
  vocabulary["bc"] = 258;
  return {
      {"version", "1.0"},
      {"added_tokens",
       {{{"id", 259}, {"content", "<s>"}, {"special", true}, {"normalized", false}},
        {{"id", 260}, {"content", "<t>"}, {"special", false}, {"lstrip", false}},
        {{"id", 261}, {"content", "<s><t>"}, {"special", true}}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"a a", "aa a", "b c"}}}}};
}

tokenizer make_tokenizer(const nlohmann::json& document) {
  result<tokenizer> made = tokenizer::parse(document.dump());
  if (!made) BOOST_FAIL(made.error().message);
  return std::move(*made);
}

const tokenizer& released_tokenizer() {
  static const result<tokenizer> loaded = tokenizer::load(CEDAR_RELEASED_DATA "/tokenizer.json");
  if (!loaded) BOOST_FAIL(loaded.error().message);
  return *loaded;
}

std::vector<std::string> tiny_tokenizer_files() {
  return {CEDAR_SOURCE_DIR "/configs/models/cedar-tiny/tokenizer.json",
          CEDAR_TEST_DATA "/golden/tiny-12/tokenizer.json",
          CEDAR_TEST_DATA "/golden/tiny-40/tokenizer.json",
          CEDAR_TEST_DATA "/golden/tiny-vision/tokenizer.json"};
}

std::string random_text(std::mt19937_64& random, std::size_t characters) {
  static constexpr std::array<std::string_view, 24> pieces = {
      " ",    "  ",   "\n",     "\r\n",       "\t", "a",      "the",        "Word",
      "7",    "2024", ".",      "+",          "!",  "é",      "ß",          "\u0301",
      "日本", "カ",   "\u3000", "\U0001F469", "😀",  "\u200D", "<｜User｜>", "<think>"};
  std::string text;
  for (std::size_t i = 0; i < characters; ++i) {
    const std::uint64_t draw = random();
    if (draw % 4 != 0) {
      text += pieces[draw / 4 % pieces.size()];
      continue;
    }
    std::uint32_t code = static_cast<std::uint32_t>(draw >> 8) % 0x110000;
    if (draw % 8 == 0) code %= 0x3000;
    if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;
    append_utf8(code, text);
  }
  return text;
}

std::string random_bytes(std::mt19937_64& random, std::size_t count) {
  static constexpr std::array<unsigned char, 16> edges = {0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0,
                                                          0xBF, 0xC1, 0xC2, 0xDF, 0xE0, 0xED,
                                                          0xEF, 0xF0, 0xF4, 0xF5};
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t draw = random();
    bytes += static_cast<char>(draw % 4 == 0 ? static_cast<unsigned char>(draw >> 8)
                                             : edges[draw / 4 % edges.size()]);
  }
  return bytes;
}

std::string read_test_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  BOOST_REQUIRE_MESSAGE(stream, path);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace cedar::text
