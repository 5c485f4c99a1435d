// Cuts a text into words by the regular expressions of tokenizer.json, one after the other.
//
// 1. Each expression is applied to the pieces that the previous one left; its matches become pieces
//    of their own, and so does what lies between them ("Split", "Isolated").
// 2. Look-aheads do not see beyond their piece.
// 3. The pieces of a text concatenate to the text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace cedar::text {

class split_pattern;

/// Immutable; split() may run in several threads.
class pre_tokenizer {
 public:
  /// Patterns bounded in number, so that a file cannot make every text expensive.
  static constexpr std::size_t patterns_max = 16;

  /// PCRE2 with UTF and Unicode properties, compiled to machine code where PCRE2 can. \s and \S
  /// mean the property White_Space, as in the Oniguruma expressions of the format. Errors:
  /// invalid_argument for an expression that PCRE2 refuses or that can match nothing at all.
  static result<pre_tokenizer> compile(const std::vector<std::string>& patterns);

  pre_tokenizer(pre_tokenizer&&) noexcept;
  pre_tokenizer& operator=(pre_tokenizer&&) noexcept;
  ~pre_tokenizer();

  /// The pieces of `text` (well-formed UTF-8), none empty, valid while `text` is. Errors: capacity
  /// if an expression needs more steps or memory than PCRE2's limits allow.
  result<std::vector<std::string_view>> split(std::string_view text) const;

 private:
  explicit pre_tokenizer(std::vector<split_pattern> patterns);

  std::vector<split_pattern> patterns_;
};

}  // namespace cedar::text
