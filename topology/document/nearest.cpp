#include "topology/document/nearest.hpp"

#include <algorithm>
#include <cctype>

namespace cedar::topology {

namespace {

// Longer words are not names of anything; comparing them would cost quadratic time for no use.
constexpr std::size_t word_bytes_max = 100;
constexpr std::size_t listed_max = 16;

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

}  // namespace

std::size_t spelling_distance(std::string_view a, std::string_view b) {
  // Three rows of the dynamic programme: row i holds the distances of a's first i letters.
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (same_letter(a[i - 1], b[j - 1]) ? 0U : 1U);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      const bool swapped =
          i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > word_bytes_max) return std::nullopt;
  const std::size_t limit = std::min(std::max<std::size_t>(2, word.size() / 3), word.size() - 1);
  std::optional<std::string> best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = spelling_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string spelling_hint(std::string_view word, const std::vector<std::string>& candidates) {
  if (const auto guess = nearest(word, candidates)) return "did you mean '" + *guess + "'?";
  if (candidates.empty()) return {};
  std::string hint = "known are: ";
  for (std::size_t i = 0; i < std::min(candidates.size(), listed_max); ++i) {
    hint += (i == 0 ? "" : ", ") + candidates[i];
  }
  return candidates.size() > listed_max ? hint + ", ..." : hint;
}

}  // namespace cedar::topology
