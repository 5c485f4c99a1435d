// The packed lists of a payload: little-endian integers one after another, unpadded.
//
// A list's bytes are checked before its elements are read, so reading an element cannot fail.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/check.hpp"
#include "runtime/flow/messages.hpp"

namespace cedar::wire::internal {

static_assert(std::endian::native == std::endian::little, "packed lists are copied as they lie");

class packed_writer {
 public:
  explicit packed_writer(std::size_t bytes) { bytes_.reserve(bytes); }

  template <class Integer>
  void put(Integer value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void put_text(const std::string& text) {
    put(static_cast<std::uint16_t>(text.size()));
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), first, first + text.size());
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class packed_reader {
 public:
  explicit packed_reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t left() const noexcept { return bytes_.size(); }
  bool holds(std::uint64_t count, std::size_t element_bytes) const noexcept {
    return count <= bytes_.size() / element_bytes;
  }

  template <class Integer>
  Integer get() {
    CEDAR_ASSERT(holds(1, sizeof(Integer)), "packed list read beyond its checked bytes");
    Integer value;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  std::string get_text(std::size_t bytes) {
    CEDAR_ASSERT(holds(bytes, 1), "packed text read beyond its checked bytes");
    std::string text(reinterpret_cast<const char*>(bytes_.data()), bytes);
    bytes_ = bytes_.subspan(bytes);
    return text;
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace cedar::wire::internal
