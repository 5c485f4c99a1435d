#include "runtime/text/internal/byte_alphabet.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace cedar::text {
namespace {

/// Bytes that stand for themselves as characters: printing ASCII and printing Latin-1.
constexpr bool prints(unsigned byte) noexcept {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// Code point of each byte; the bytes that do not print get U+0100, U+0101, ... in ascending order.
constexpr std::array<std::uint16_t, 256> make_code_points() noexcept {
  std::array<std::uint16_t, 256> table{};
  std::uint16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte)
    table[byte] = prints(byte) ? static_cast<std::uint16_t>(byte) : next++;
  return table;
}

constexpr std::array<std::uint16_t, 256> code_points = make_code_points();
constexpr std::size_t code_point_end = 0x100 + 68;  // 68 bytes do not print

/// Byte of each code point of the alphabet, −1 elsewhere.
constexpr std::array<std::int16_t, code_point_end> make_bytes() noexcept {
  std::array<std::int16_t, code_point_end> table{};
  for (std::int16_t& entry : table) entry = -1;
  for (unsigned byte = 0; byte < 256; ++byte)
    table[code_points[byte]] = static_cast<std::int16_t>(byte);
  return table;
}

constexpr std::array<std::int16_t, code_point_end> bytes_of = make_bytes();

}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  std::string written;
  for (const char byte : bytes) {
    const unsigned code = code_points[static_cast<unsigned char>(byte)];
    if (code < 0x80) {
      written += static_cast<char>(code);
    } else {  // below U+0800: two bytes
      written += static_cast<char>(0xC0 | (code >> 6));
      written += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return written;
}

std::optional<std::string> from_byte_alphabet(std::string_view written) {
  std::string bytes;
  bytes.reserve(written.size());
  for (std::size_t i = 0; i < written.size(); ++i) {
    std::size_t code = static_cast<unsigned char>(written[i]);
    if (code >= 0x80) {
      if (code >= 0xE0 || i + 1 == written.size()) return std::nullopt;
      code = (code & 0x1F) << 6 | (static_cast<unsigned char>(written[++i]) & 0x3F);
    }
    if (code >= code_point_end || bytes_of[code] < 0) return std::nullopt;
    bytes += static_cast<char>(bytes_of[code]);
  }
  return bytes;
}

}  // namespace cedar::text
