#include "runtime/text/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "kernels/base/check.hpp"
#include "runtime/text/internal/added_tokens.hpp"
#include "runtime/text/internal/bpe.hpp"
#include "runtime/text/internal/byte_alphabet.hpp"
#include "runtime/text/internal/pre_tokenizer.hpp"
#include "runtime/text/internal/tokenizer_document.hpp"
#include "runtime/text/utf8.hpp"

namespace cedar::text {
namespace {

enum class token_kind : std::uint8_t { plain, visible_control, hidden_control };

/// Control tokens that the released tokenizer does not flag as special. Files that were rebuilt
/// from public parts carry guessed flags, so the names decide.
constexpr std::array<std::string_view, 32> visible_control_strings = {
    "<｜System｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
    "｜DSML｜",
    "<｜latest_reminder｜>",
    "<｜action｜>",
    "<｜query｜>",
    "<｜authority｜>",
    "<｜domain｜>",
    "<｜task｜>",
    "<｜political｜>",
    "<｜entity｜>",
    "<｜title｜>",
    "<｜safety｜>",
    "<｜answer｜>",
    "<｜search｜>",
    "<｜extracted_url｜>",
    "<｜read_url｜>",
    "<｜fim▁hole｜>",
    "<｜fim▁begin｜>",
    "<｜fim▁end｜>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
    "<｜tool▁sep｜>",
};

token_kind kind_of(const added_token& token) {
  const auto& visible = visible_control_strings;
  const bool named = std::find(visible.begin(), visible.end(), token.content) != visible.end();
  return token.special && !named ? token_kind::hidden_control : token_kind::visible_control;
}

result<std::string> read_file(const std::filesystem::path& file) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(file, code)) return fail(errc::not_found, "no such file");
  const std::uintmax_t size = std::filesystem::file_size(file, code);
  if (code) return fail(errc::io, code.message());
  if (size > tokenizer::file_bytes_max)
    return fail(errc::malformed, std::to_string(size) + " bytes is too large for a tokenizer");
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!stream) return fail(errc::io, "cannot be read");
  return bytes;
}

}  // namespace

struct tokenizer::parts {
  std::vector<std::string> bytes;  ///< by id
  std::vector<token_kind> kinds;  ///< by id
  added_token_matcher controls;
  pre_tokenizer splitter;
  bpe merger;

  /// Appends the tokens of `text`, in which no control strings are looked for.
  result<void> encode_plain(std::string_view text, bpe::workspace& space,
                            std::vector<token_id>& out) const {
    const result<std::vector<std::string_view>> words = splitter.split(text);
    if (!words) return fail(words.error());
    for (const std::string_view word : *words) merger.encode(word, space, out);
    return {};
  }
};

namespace {

/// Byte strings of all tokens; entries of the vocabulary must be written in the byte alphabet.
result<std::vector<std::string>> token_bytes_of(const tokenizer_document& document,
                                                const std::vector<token_kind>& kinds) {
  std::vector<std::string> bytes(document.strings.size());
  for (std::size_t id = 0; id < bytes.size(); ++id) {
    const std::string& written = document.strings[id];
    if (kinds[id] != token_kind::plain) {
      bytes[id] = written;
    } else if (auto plain = from_byte_alphabet(written)) {
      bytes[id] = std::move(*plain);
    } else {
      return fail(errc::malformed,
                  "model.vocab: \"" + written + "\" is not written in the byte-level alphabet");
    }
  }
  return bytes;
}

result<bpe> make_bpe(const tokenizer_document& document, const std::vector<std::string>& bytes,
                     const std::vector<token_kind>& kinds) {
  std::array<token_id, 256> byte_tokens;
  byte_tokens.fill(-1);
  for (std::size_t id = 0; id < bytes.size(); ++id)
    if (kinds[id] == token_kind::plain && bytes[id].size() == 1)
      byte_tokens[static_cast<unsigned char>(bytes[id][0])] = static_cast<token_id>(id);
  for (std::size_t byte = 0; byte < 256; ++byte)
    if (byte_tokens[byte] < 0)
      return fail(errc::malformed, "model.vocab has no token for byte " + std::to_string(byte));
  bpe_merge_table table(document.merges.size());
  std::uint32_t rank = 0;
  for (const bpe_merge& merge : document.merges) {
    // Else a user's text could forge a control token.
    if (kinds[static_cast<std::size_t>(merge.result)] != token_kind::plain)
      return fail(errc::malformed,
                  "model.merges[" + std::to_string(rank) + "] makes an added token");
    if (!table.insert(merge, rank))
      return fail(errc::malformed, "model.merges[" + std::to_string(rank) + "] is a repetition");
    ++rank;
  }
  return bpe(byte_tokens, std::move(table));
}

}  // namespace

tokenizer::tokenizer(std::unique_ptr<const parts> everything) noexcept
    : parts_(std::move(everything)) {}
tokenizer::tokenizer(tokenizer&&) noexcept = default;
tokenizer& tokenizer::operator=(tokenizer&&) noexcept = default;
tokenizer::~tokenizer() = default;

result<tokenizer> tokenizer::load(const std::filesystem::path& file) {
  const result<std::string> text = read_file(file);
  if (!text) return fail(text.error().with(file.string()));
  result<tokenizer> loaded = parse(*text);
  if (!loaded) return fail(loaded.error().with(file.string()));
  return loaded;
}

result<tokenizer> tokenizer::parse(std::string_view json_text) {
  const result<tokenizer_document> document = parse_tokenizer_document(json_text);
  if (!document) return fail(document.error());
  std::vector<token_kind> kinds(document->strings.size(), token_kind::plain);
  added_token_matcher controls;
  for (const added_token& added : document->added) {
    kinds[static_cast<std::size_t>(added.token)] = kind_of(added);
    const bool fresh = controls.insert(added.content, added.token);
    CEDAR_ASSERT(fresh, added.content);
  }
  result<std::vector<std::string>> bytes = token_bytes_of(*document, kinds);
  if (!bytes) return fail(bytes.error());
  result<bpe> merger = make_bpe(*document, *bytes, kinds);
  if (!merger) return fail(merger.error());
  result<pre_tokenizer> splitter = pre_tokenizer::compile(document->split_patterns);
  if (!splitter) return fail(splitter.error().with("pre_tokenizer"));
  return tokenizer(std::unique_ptr<const parts>(new parts{std::move(*bytes), std::move(kinds),
                                                          std::move(controls), std::move(*splitter),
                                                          std::move(*merger)}));
}

std::size_t tokenizer::vocabulary_size() const noexcept {
  return parts_->bytes.size();
}

bool tokenizer::known(token_id token) const noexcept {
  return token >= 0 && static_cast<std::size_t>(token) < parts_->bytes.size();
}

result<std::vector<token_id>> tokenizer::encode(std::string_view text, control_strings mode) const {
  if (text.size() > text_bytes_max)
    return fail(errc::capacity, "a text of " + std::to_string(text.size()) + " bytes, at most " +
                                    std::to_string(text_bytes_max) + " are supported");
  if (const std::optional<std::size_t> offset = first_invalid_utf8(text))
    return fail(errc::invalid_argument, "not UTF-8 at byte " + std::to_string(*offset));
  std::vector<token_id> tokens;
  bpe::workspace space;
  std::size_t done = 0;
  while (mode == control_strings::tokens) {
    const std::optional<added_token_matcher::match> found = parts_->controls.find(text, done);
    if (!found) break;
    const std::string_view before = text.substr(done, found->begin - done);
    if (auto encoded = parts_->encode_plain(before, space, tokens); !encoded)
      return fail(encoded.error());
    tokens.push_back(found->token);
    done = found->begin + found->size;
  }
  if (auto encoded = parts_->encode_plain(text.substr(done), space, tokens); !encoded)
    return fail(encoded.error());
  return tokens;
}

result<std::string> tokenizer::decode(std::span<const token_id> tokens,
                                      decode_options options) const {
  std::string text;
  for (const token_id token : tokens) {
    const result<std::string_view> bytes = token_bytes(token);
    if (!bytes) return fail(bytes.error());
    if (!options.skip_special || !hidden(token)) text += *bytes;
  }
  return text;
}

result<std::string_view> tokenizer::token_bytes(token_id token) const {
  if (!known(token))
    return fail(errc::invalid_argument, "token " + std::to_string(token) + " is outside 0.." +
                                            std::to_string(vocabulary_size() - 1));
  return std::string_view(parts_->bytes[static_cast<std::size_t>(token)]);
}

result<std::string> tokenizer::token_string(token_id token) const {
  const result<std::string_view> bytes = token_bytes(token);
  if (!bytes) return fail(bytes.error());
  return is_control(token) ? std::string(*bytes) : to_byte_alphabet(*bytes);
}

std::optional<token_id> tokenizer::control_token(std::string_view string) const noexcept {
  return parts_->controls.find_exact(string);
}

bool tokenizer::is_control(token_id token) const noexcept {
  return known(token) && parts_->kinds[static_cast<std::size_t>(token)] != token_kind::plain;
}

bool tokenizer::hidden(token_id token) const noexcept {
  return known(token) &&
         parts_->kinds[static_cast<std::size_t>(token)] == token_kind::hidden_control;
}

}  // namespace cedar::text
