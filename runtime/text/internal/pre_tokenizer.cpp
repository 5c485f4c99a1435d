#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/text/internal/pre_tokenizer.hpp"

#include <pcre2.h>

#include <array>
#include <cstdint>
#include <utility>

#include "kernels/base/check.hpp"

namespace cedar::text {
namespace {

/// Bound of the stack of compiled expressions; those of the release stay within a few hundred
/// bytes.
constexpr std::size_t jit_stack_bytes_max = std::size_t{1} << 20;
constexpr std::size_t jit_stack_bytes_start = std::size_t{32} << 10;

template <auto Free>
struct freed_by {
  void operator()(auto* handle) const noexcept { Free(handle); }
};

using match_data_handle = std::unique_ptr<pcre2_match_data, freed_by<pcre2_match_data_free>>;
using match_context_handle =
    std::unique_ptr<pcre2_match_context, freed_by<pcre2_match_context_free>>;
using jit_stack_handle = std::unique_ptr<pcre2_jit_stack, freed_by<pcre2_jit_stack_free>>;

std::string describe(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

/// PCRE2's \s also takes U+180E, which lost the property White_Space in Unicode 6.3.
std::string with_unicode_spaces(std::string_view pattern) {
  std::string rewritten;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      rewritten += pattern[i];
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's') {
      rewritten += "\\p{White_Space}";
    } else if (escaped == 'S') {
      rewritten += "\\P{White_Space}";
    } else {
      rewritten += {'\\', escaped};
    }
  }
  return rewritten;
}

/// What one thread needs to match: made per text, so that the patterns can be shared.
struct matcher {
  match_data_handle data{pcre2_match_data_create(1, nullptr)};
  match_context_handle context{pcre2_match_context_create(nullptr)};
  jit_stack_handle stack{
      pcre2_jit_stack_create(jit_stack_bytes_start, jit_stack_bytes_max, nullptr)};

  matcher() {
    CEDAR_ASSERT(data && context, "out of memory");
    // Without a stack of its own (PCRE2 built without a compiler) matching is interpreted.
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

}  // namespace

class split_pattern {
 public:
  static result<split_pattern> compile(const std::string& source);

  /// Appends the pieces of `piece` to `out`.
  result<void> split(std::string_view piece, matcher& with,
                     std::vector<std::string_view>& out) const;

 private:
  struct freed {
    void operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }
  };
  using code_handle = std::unique_ptr<pcre2_code, freed>;

  split_pattern(std::string source, code_handle code)
      : source_(std::move(source)), code_(std::move(code)) {}

  std::string source_;
  code_handle code_;
};

result<split_pattern> split_pattern::compile(const std::string& source) {
  const std::string rewritten = with_unicode_spaces(source);
  int code = 0;
  PCRE2_SIZE offset = 0;
  code_handle compiled(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rewritten.data()), rewritten.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &offset, nullptr));
  if (!compiled)
    return fail(errc::invalid_argument, "expression \"" + source + "\": " + describe(code));
  std::uint32_t matches_empty = 0;
  pcre2_pattern_info(compiled.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty != 0)
    return fail(errc::invalid_argument, "expression \"" + source + "\" can match the empty string");
  // Failure means that this machine has no compiler for expressions: they are interpreted.
  pcre2_jit_compile(compiled.get(), PCRE2_JIT_COMPLETE);
  return split_pattern(source, std::move(compiled));
}

result<void> split_pattern::split(std::string_view piece, matcher& with,
                                  std::vector<std::string_view>& out) const {
  std::size_t done = 0;
  while (done < piece.size()) {
    // The text was checked once, by the caller; checking here would be quadratic.
    const int count =
        pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(piece.data()), piece.size(), done,
                    PCRE2_NO_UTF_CHECK, with.data.get(), with.context.get());
    if (count == PCRE2_ERROR_NOMATCH) break;
    if (count < 0)
      return fail(errc::capacity, "expression \"" + source_ + "\": " + describe(count));
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(with.data.get());
    // \K can move the start of a match; nothing of the text may be lost or repeated by it.
    if (range[0] < done || range[1] <= range[0])
      return fail(errc::invalid_argument, "expression \"" + source_ + "\" matches nothing at all");
    if (range[0] > done) out.push_back(piece.substr(done, range[0] - done));
    out.push_back(piece.substr(range[0], range[1] - range[0]));
    done = range[1];
  }
  if (done < piece.size()) out.push_back(piece.substr(done));
  return {};
}

pre_tokenizer::pre_tokenizer(std::vector<split_pattern> patterns)
    : patterns_(std::move(patterns)) {}
pre_tokenizer::pre_tokenizer(pre_tokenizer&&) noexcept = default;
pre_tokenizer& pre_tokenizer::operator=(pre_tokenizer&&) noexcept = default;
pre_tokenizer::~pre_tokenizer() = default;

result<pre_tokenizer> pre_tokenizer::compile(const std::vector<std::string>& patterns) {
  if (patterns.size() > patterns_max)
    return fail(errc::invalid_argument, std::to_string(patterns.size()) + " expressions, at most " +
                                            std::to_string(patterns_max) + " are supported");
  std::vector<split_pattern> compiled;
  for (const std::string& pattern : patterns) {
    result<split_pattern> one = split_pattern::compile(pattern);
    if (!one) return fail(one.error());
    compiled.push_back(std::move(*one));
  }
  return pre_tokenizer(std::move(compiled));
}

result<std::vector<std::string_view>> pre_tokenizer::split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  if (!text.empty()) pieces.push_back(text);
  matcher with;
  std::vector<std::string_view> finer;
  for (const split_pattern& pattern : patterns_) {
    finer.clear();
    for (const std::string_view piece : pieces)
      if (result<void> done = pattern.split(piece, with, finer); !done) return fail(done.error());
    pieces.swap(finer);
  }
  return pieces;
}

}  // namespace cedar::text
