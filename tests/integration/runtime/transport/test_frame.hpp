// Frames whose bytes say what they are, and the secret of a test.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/flow/frame.hpp"
#include "runtime/transport/options.hpp"

namespace cedar::transport::test {

/// 32 bytes of the text's first character.
inline shared_secret secret_of(const std::string& text) {
  return shared_secret(32, static_cast<std::byte>(text.at(0)));
}

/// Prime, so that pieces and pages never begin alike.
inline constexpr std::size_t pattern_bytes = 65521;

inline const std::vector<std::byte>& pattern() {
  static const std::vector<std::byte> bytes = [] {
    std::vector<std::byte> out(pattern_bytes);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::byte>((i * 7 + i / 255) & 0xff);
    return out;
  }();
  return bytes;
}

/// Calls `use(at, expected, count)` for runs of bytes [from, from + bytes) of the payload of
/// `salt`, whole runs at a time: byte by byte, the sanitizers take minutes.
template <class Use>
void for_pattern(std::size_t from, std::size_t bytes, std::uint64_t salt, Use&& use) {
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t begin = (from + at + salt) % pattern_bytes;
    const std::size_t count = std::min(bytes - at, pattern_bytes - begin);
    use(at, pattern().data() + begin, count);
    at += count;
  }
}

inline void fill_pattern(std::byte* to, std::size_t from, std::size_t bytes, std::uint64_t salt) {
  for_pattern(from, bytes, salt, [&](std::size_t at, const std::byte* expected, std::size_t count) {
    std::memcpy(to + at, expected, count);
  });
}

/// `bytes` of payload, its last tenth as lists, a header of 72 bytes that begins with the salt.
inline flow::frame whole_frame(std::size_t bytes, std::uint64_t salt) {
  flow::frame out;
  out.header.resize(72);
  std::memcpy(out.header.data(), &salt, sizeof salt);
  const std::size_t lists = bytes / 10;
  kernels::buffer tensor = kernels::buffer::uninitialized(bytes - lists);
  fill_pattern(tensor.data(), 0, bytes - lists, salt);
  if (bytes > 0) out.tensor = flow::freeze(std::move(tensor));
  out.lists.resize(lists);
  fill_pattern(out.lists.data(), bytes - lists, lists, salt);
  return out;
}

inline std::uint64_t salt_of(const flow::received_frame& frame) {
  std::uint64_t salt = 0;
  std::memcpy(&salt, frame.header.data(), sizeof salt);
  return salt;
}

inline bool is_whole(const flow::received_frame& frame) {
  if (frame.header.size() != 72) return false;
  bool whole = true;
  for_pattern(0, frame.payload.bytes(), salt_of(frame),
              [&](std::size_t at, const std::byte* expected, std::size_t count) {
                whole = whole && std::memcmp(frame.payload.data() + at, expected, count) == 0;
              });
  return whole;
}

}  // namespace cedar::transport::test
