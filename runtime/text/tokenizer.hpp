// Text to token ids and back: byte-level BPE as a checkpoint's tokenizer.json describes it.
//
// 1. Nothing is added at the start or the end of a text: who builds prompts writes the control
//    strings, as text.
// 2. decode(encode(text)) == text, for every well-formed text.
// 3. Immutable after load(): every const member may be called from several threads.
// Streaming output is stream_decoder.hpp's job; prompt templates are not known here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"

namespace cedar::text {

/// What encode() makes of the strings of control tokens ("<｜User｜>", "<think>", ...).
enum class control_strings : std::uint8_t {
  plain_text,  ///< ordinary characters: for everything that a user wrote
  tokens,  ///< one token each: for prompts that a template has written
};

struct decode_options {
  bool skip_special = false;  ///< leave out the tokens for which tokenizer::hidden() holds
};

class tokenizer {
 public:
  /// Bounds of a tokenizer.json and of a text, in bytes.
  static constexpr std::size_t file_bytes_max = std::size_t{256} << 20;
  static constexpr std::size_t text_bytes_max = std::size_t{1} << 30;

  /// Errors: not_found, io (the file); malformed, invalid_argument (what it says, by key).
  static result<tokenizer> load(const std::filesystem::path& file);
  /// The same from the text of a tokenizer.json.
  static result<tokenizer> parse(std::string_view json_text);

  tokenizer(tokenizer&&) noexcept;
  tokenizer& operator=(tokenizer&&) noexcept;
  ~tokenizer();

  /// Token ids are 0 .. vocabulary_size() − 1, without gaps. A model's vocabulary may be larger.
  std::size_t vocabulary_size() const noexcept;

  /// Errors: invalid_argument if `text` is not well-formed UTF-8 (naming the byte offset);
  /// capacity if it is longer than text_bytes_max or an expression of the file exceeds its limits.
  result<std::vector<token_id>> encode(std::string_view text, control_strings mode) const;

  /// The bytes that the tokens stand for. They may end, or break, inside a UTF-8 character.
  /// Errors: invalid_argument for an id outside the vocabulary.
  result<std::string> decode(std::span<const token_id> tokens, decode_options options = {}) const;

  /// The bytes of one token, valid as long as the tokenizer. Same errors as decode().
  result<std::string_view> token_bytes(token_id token) const;
  /// The token as tokenizer.json writes it: in the byte alphabet, or the string of a control token.
  result<std::string> token_string(token_id token) const;

  /// The control token (added token) with this string, for example "<｜Assistant｜>".
  std::optional<token_id> control_token(std::string_view string) const noexcept;
  /// True if `token` is a control token; false for ids outside the vocabulary.
  bool is_control(token_id token) const noexcept;
  /// True if skip_special leaves `token` out: the file calls it special and it is not one of the
  /// release's control tokens that are known to be visible (roles, thinking, tools, tasks).
  bool hidden(token_id token) const noexcept;

 private:
  struct parts;
  explicit tokenizer(std::unique_ptr<const parts> everything) noexcept;

  bool known(token_id token) const noexcept;

  std::unique_ptr<const parts> parts_;
};

}  // namespace cedar::text
