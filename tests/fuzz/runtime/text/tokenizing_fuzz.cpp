// The input is a text for the trained checkpoint's tokenizer, then, two bytes each, token ids.
#include <string_view>

#include "kernels/base/check.hpp"
#include "runtime/text/stream_decoder.hpp"
#include "runtime/text/tokenizer.hpp"
#include "runtime/text/utf8.hpp"
#include "tests/support/fuzz_driver.hpp"

namespace cedar::test {

fuzz_material fuzz_corpus() {
  return {
      {"Once upon a time, there was a little cat.\n\nShe didn't 123 like  rain!  ",
       "<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜><think>", "日本語のテキスト、カタカナ",
       "naïve café \xF0\x9F\x98\x80 \xE0\xA4\xB9\xE0\xA4\xBF\xE0\xA4\xA8\xE0\xA5\x8D"},
      {"<｜User｜>", "<｜", "｜>", "</think>", " ", "\n", "12345", "\xCC\x81", "\xF0\x9F",
       "\xE2\x80\x8D", "\xC2\xA0", "é"}};
}

}  // namespace cedar::test

namespace {

using namespace cedar::text;

const tokenizer& vocabulary() {
  static const auto loaded =
      tokenizer::load(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny/tokenizer.json");
  CEDAR_ASSERT(loaded.has_value(), loaded.error().message);
  return *loaded;
}

void check_encoding(std::string_view text, control_strings mode) {
  const auto tokens = vocabulary().encode(text, mode);
  CEDAR_ASSERT(tokens.has_value() == !first_invalid_utf8(text), "UTF-8");
  if (!tokens) return;
  for (const cedar::token_id token : *tokens)
    CEDAR_ASSERT(mode == control_strings::tokens || !vocabulary().is_control(token), "forged");
  CEDAR_ASSERT(vocabulary().decode(*tokens).value() == text, "another text");
}

void check_decoding(const std::vector<cedar::token_id>& tokens, decode_options options) {
  stream_decoder decoder(vocabulary(), options);
  std::string text;
  for (const cedar::token_id token : tokens) {
    const std::string piece = decoder.push(token).value();
    CEDAR_ASSERT(!first_invalid_utf8(piece), "half a character");
    text += piece;
  }
  text += decoder.finish();
  CEDAR_ASSERT(text == to_valid_utf8(vocabulary().decode(tokens, options).value()), "another text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const control_strings mode : {control_strings::plain_text, control_strings::tokens})
    check_encoding(text, mode);
  std::vector<cedar::token_id> tokens;
  for (std::size_t i = 0; i + 1 < size; i += 2)
    tokens.push_back(static_cast<cedar::token_id>((data[i] | std::size_t{data[i + 1]} << 8) %
                                                  vocabulary().vocabulary_size()));
  check_decoding(tokens, {.skip_special = false});
  check_decoding(tokens, {.skip_special = true});
  return 0;
}
