// Guesses what a person meant by a word that does not exist.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cedar::topology {

/// Letters to insert, delete, change or swap with their neighbour to turn `a` into `b` (optimal
/// string alignment distance; upper and lower case count as equal).
std::size_t spelling_distance(std::string_view a, std::string_view b);

/// The candidate closest to `word`, if its distance is at most a third of the word's length, at
/// least 2, and less than the word's length. Among equals the first one.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

/// A hint about an unknown `word`: "did you mean 'x'?", else "known are: a, b, c" (at most
/// sixteen), else "".
std::string spelling_hint(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace cedar::topology
