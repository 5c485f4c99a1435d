// Finds the added (control) tokens of a tokenizer in a text: leftmost first, then longest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/ids.hpp"

namespace cedar::text {

/// A trie over the contents of the added tokens. Searching costs at most the longest content per
/// byte of text.
class added_token_matcher {
 public:
  struct match {
    std::size_t begin;
    std::size_t size;
    token_id token;
  };

  added_token_matcher();

  /// `content` must not be empty. False if it was inserted before.
  bool insert(std::string_view content, token_id token);

  /// The first match at or after `begin`.
  std::optional<match> find(std::string_view text, std::size_t begin) const noexcept;
  /// The token whose whole content is `content`.
  std::optional<token_id> find_exact(std::string_view content) const noexcept;

 private:
  static constexpr std::uint32_t none = 0;  // the root is nobody's child or sibling
  static constexpr token_id no_token = -1;

  struct node {
    unsigned char byte = 0;
    std::uint32_t first_child = none;
    std::uint32_t next_sibling = none;
    token_id token = no_token;
  };

  std::uint32_t child(std::uint32_t parent, unsigned char byte) const noexcept;
  std::optional<match> longest_at(std::string_view text, std::size_t begin) const noexcept;

  std::vector<node> nodes_;
  std::array<std::uint32_t, 256> roots_{};  ///< node of each first byte
};

}  // namespace cedar::text
