// Frames whose bytes say what they are, and the secret of a test.
#pragma once

#include <cstring>
#include <string>

#include "runtime/flow/frame.hpp"
#include "runtime/transport/options.hpp"

namespace cedar::transport::test {

/// 32 bytes of the text's first character.
inline shared_secret secret_of(const std::string& text) {
  return shared_secret(32, static_cast<std::byte>(text.at(0)));
}

inline std::byte byte_at(std::size_t offset, std::uint64_t salt) {
  return static_cast<std::byte>((offset * 7 + offset / 255 + salt) & 0xff);
}

/// `bytes` of payload, its last tenth as lists, a header of 72 bytes that begins with the salt.
inline flow::frame whole_frame(std::size_t bytes, std::uint64_t salt) {
  flow::frame out;
  out.header.resize(72);
  std::memcpy(out.header.data(), &salt, sizeof salt);
  const std::size_t lists = bytes / 10;
  kernels::buffer tensor = kernels::buffer::uninitialized(bytes - lists);
  for (std::size_t i = 0; i < bytes - lists; ++i) tensor.data()[i] = byte_at(i, salt);
  if (bytes > 0) out.tensor = flow::freeze(std::move(tensor));
  out.lists.resize(lists);
  for (std::size_t i = 0; i < lists; ++i) out.lists[i] = byte_at(bytes - lists + i, salt);
  return out;
}

inline std::uint64_t salt_of(const flow::received_frame& frame) {
  std::uint64_t salt = 0;
  std::memcpy(&salt, frame.header.data(), sizeof salt);
  return salt;
}

inline bool is_whole(const flow::received_frame& frame) {
  if (frame.header.size() != 72) return false;
  const std::uint64_t salt = salt_of(frame);
  for (std::size_t i = 0; i < frame.payload.bytes(); ++i) {
    if (frame.payload.data()[i] != byte_at(i, salt)) return false;
  }
  return true;
}

}  // namespace cedar::transport::test
