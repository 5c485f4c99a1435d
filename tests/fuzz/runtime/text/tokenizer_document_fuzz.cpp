// The input is a tokenizer.json, with "$" in the place of the 256 entries of single bytes, so that
// mutations meet the rest. Whatever is accepted must keep the tokenizer's promises: a text decodes
// to itself, user text has no control tokens, every id has a string.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "kernels/base/check.hpp"
#include "runtime/text/internal/byte_alphabet.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tests/support/fuzz_driver.hpp"

namespace cedar::test {

fuzz_material fuzz_corpus() {
  return {{R"({"version":"1.0","truncation":null,"normalizer":{"type":"Sequence","normalizers":[]},
"added_tokens":[{"id":259,"content":"<s>","lstrip":false,"normalized":false,"special":true},
{"id":260,"content":"<s>t"},{"id":261,"content":"the","special":false}],
"pre_tokenizer":{"type":"Sequence","pretokenizers":[
{"type":"Split","pattern":{"Regex":"\\p{N}{1,3}"},"behavior":"Isolated","invert":false},
{"type":"Split","pattern":{"Regex":" ?[\\p{L}\\p{M}]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated"},
{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},
"post_processor":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"},
"model":{"type":"BPE","dropout":null,"byte_fallback":false,"ignore_merges":false,
"vocab":{$,"at":256,"Ġc":257,"Ġcat":258},"merges":["a t","Ġ c",["Ġc","at"]]}})",
           R"({"pre_tokenizer":{"type":"ByteLevel","use_regex":false,"add_prefix_space":false},
"decoder":{"type":"ByteLevel"},"added_tokens":[{"id":256,"content":"at"}],
"model":{"type":"BPE","vocab":{$,"at":256},"merges":["a t"]}})"},
          {"null",
           "true",
           "[]",
           "{}",
           "\"",
           ",",
           "\"type\":",
           "\"Split\"",
           "\"ByteLevel\"",
           "\"Regex\":",
           "\\\\s+",
           "(?!",
           "(?<=",
           "\\\\K",
           "*",
           "+",
           "|",
           "\"a b\",",
           "[\"a\",\"t\"],",
           "\"special\":true,",
           "\"lstrip\":true,",
           "\"content\":\"a\",",
           "\"ignore_merges\":true,",
           "259",
           "\"Ġt\":259,",
           "{\"id\":262,\"content\":\"m\"},"}};
}

}  // namespace cedar::test

namespace {

using namespace cedar::text;

void check(const tokenizer& vocabulary, std::string_view text, control_strings mode) {
  const auto tokens = vocabulary.encode(text, mode);
  if (!tokens) return;  // an expression that needs too much or matches nothing
  for (const cedar::token_id token : *tokens)
    CEDAR_ASSERT(mode == control_strings::tokens || !vocabulary.is_control(token), "forged");
  CEDAR_ASSERT(vocabulary.decode(*tokens).value() == text, "another text");
}

/// Entries of the single bytes: "\"!\":33" and so on.
std::string byte_entries() {
  std::string entries;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    entries += (byte ? "," : "") + nlohmann::json(to_byte_alphabet(one)).dump() + ":" +
               std::to_string(byte);
  }
  return entries;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string entries = byte_entries();
  std::string document(reinterpret_cast<const char*>(data), size);
  if (const std::size_t at = document.find('$'); at != std::string::npos)
    document.replace(at, 1, entries);
  const auto vocabulary = tokenizer::parse(document);
  if (!vocabulary) {
    CEDAR_ASSERT(!vocabulary.error().message.empty(), "no reason");
    return 0;
  }
  const auto end = static_cast<cedar::token_id>(vocabulary->vocabulary_size());
  for (cedar::token_id token = 0; token < end; ++token)
    CEDAR_ASSERT(!vocabulary->token_string(token).value().empty(), "no string");
  for (const std::string_view text : {"", "the 12 cats<｜User｜> sat\n\n on\ta 日本 mat.", " Ġt é"})
    for (const control_strings mode : {control_strings::plain_text, control_strings::tokens})
      check(*vocabulary, text, mode);
  return 0;
}
