#include "runtime/text/internal/added_tokens.hpp"

#include "kernels/base/check.hpp"

namespace cedar::text {

added_token_matcher::added_token_matcher() : nodes_(1) {}

bool added_token_matcher::insert(std::string_view content, token_id token) {
  CEDAR_REQUIRE(!content.empty(), "an added token needs a content");
  std::uint32_t at = 0;
  for (const char character : content) {
    const unsigned char byte = static_cast<unsigned char>(character);
    std::uint32_t next = child(at, byte);
    if (next == none) {
      next = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({.byte = byte, .next_sibling = at == 0 ? none : nodes_[at].first_child});
      if (at == 0) {
        roots_[byte] = next;
      } else {
        nodes_[at].first_child = next;
      }
    }
    at = next;
  }
  if (nodes_[at].token != no_token) return false;
  nodes_[at].token = token;
  return true;
}

std::optional<added_token_matcher::match> added_token_matcher::find(
    std::string_view text, std::size_t begin) const noexcept {
  for (; begin < text.size(); ++begin) {
    if (roots_[static_cast<unsigned char>(text[begin])] == none) continue;
    if (const std::optional<match> found = longest_at(text, begin)) return found;
  }
  return std::nullopt;
}

std::optional<token_id> added_token_matcher::find_exact(std::string_view content) const noexcept {
  const std::optional<match> found = longest_at(content, 0);
  if (!found || found->size != content.size()) return std::nullopt;
  return found->token;
}

std::uint32_t added_token_matcher::child(std::uint32_t parent, unsigned char byte) const noexcept {
  if (parent == 0) return roots_[byte];
  std::uint32_t at = nodes_[parent].first_child;
  while (at != none && nodes_[at].byte != byte) at = nodes_[at].next_sibling;
  return at;
}

std::optional<added_token_matcher::match> added_token_matcher::longest_at(
    std::string_view text, std::size_t begin) const noexcept {
  std::optional<match> longest;
  std::uint32_t at = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    at = child(at, static_cast<unsigned char>(text[i]));
    if (at == none) break;
    if (nodes_[at].token != no_token) longest = match{begin, i + 1 - begin, nodes_[at].token};
  }
  return longest;
}

}  // namespace cedar::text
