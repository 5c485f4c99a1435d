#include "runtime/text/utf8.hpp"

#include <cstdint>

namespace cedar::text {
namespace {

enum class form : std::uint8_t { character, broken, unfinished };

struct sequence {
  form kind;
  std::size_t size;  ///< bytes of the character, or of the maximal subpart
};

/// Bytes that a lead byte announces, and the range that its first continuation byte must lie in
/// (Unicode standard, table 3-7). Size 0: not a lead byte.
struct lead {
  std::size_t size;
  unsigned char low;
  unsigned char high;
};

constexpr lead classify(unsigned char byte) noexcept {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};  // no surrogates
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // up to U+10FFFF
  return {0, 0, 0};
}

/// The sequence at the front of `bytes`, which is not empty.
sequence front(std::string_view bytes) noexcept {
  const lead first = classify(static_cast<unsigned char>(bytes[0]));
  if (first.size == 0) return {form::broken, 1};
  for (std::size_t i = 1; i < first.size; ++i) {
    if (i == bytes.size()) return {form::unfinished, i};
    const unsigned char byte = static_cast<unsigned char>(bytes[i]);
    const bool fits = i == 1 ? byte >= first.low && byte <= first.high : (byte & 0xC0) == 0x80;
    if (!fits) return {form::broken, i};
  }
  return {form::character, first.size};
}

/// Appends the valid form of `bytes` to `out`; returns how many bytes at the end are unfinished.
std::size_t append_valid(std::string_view bytes, std::string& out) {
  std::size_t offset = 0;
  while (offset < bytes.size()) {
    const sequence next = front(bytes.substr(offset));
    if (next.kind == form::unfinished) break;
    if (next.kind == form::broken) {
      out += replacement_character;
    } else {
      out += bytes.substr(offset, next.size);
    }
    offset += next.size;
  }
  return bytes.size() - offset;
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view bytes) noexcept {
  std::size_t offset = 0;
  while (offset < bytes.size()) {
    const sequence next = front(bytes.substr(offset));
    if (next.kind != form::character) return offset;
    offset += next.size;
  }
  return std::nullopt;
}

std::string to_valid_utf8(std::string_view bytes) {
  utf8_assembler assembler;
  std::string text = assembler.push(bytes);
  text += assembler.finish();
  return text;
}

std::string utf8_assembler::push(std::string_view bytes) {
  std::string text;
  if (pending_.empty()) {
    pending_ = bytes.substr(bytes.size() - append_valid(bytes, text));
    return text;
  }
  pending_ += bytes;
  const std::size_t rest = append_valid(pending_, text);
  pending_.erase(0, pending_.size() - rest);
  return text;
}

std::string utf8_assembler::finish() {
  // What waits is one prefix of a well-formed sequence: one maximal subpart.
  std::string text(pending_.empty() ? std::string_view{} : replacement_character);
  pending_.clear();
  return text;
}

}  // namespace cedar::text
