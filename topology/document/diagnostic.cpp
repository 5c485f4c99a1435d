#include "topology/document/diagnostic.hpp"

#include <algorithm>
#include <tuple>

namespace cedar::topology {

std::string to_string(const diagnostic& what) {
  auto text = what.file + ":" + std::to_string(what.line) + ":" + std::to_string(what.column) +
              ": " + what.message;
  if (!what.hint.empty()) text += "\n  hint: " + what.hint;
  return text;
}

std::string to_string(const std::vector<diagnostic>& all) {
  std::string text;
  for (const diagnostic& what : all) text += to_string(what) + "\n";
  return text;
}

void sort_by_position(std::vector<diagnostic>& all) {
  std::stable_sort(all.begin(), all.end(), [](const diagnostic& a, const diagnostic& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
}

std::string printable(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x20 && byte < 0x7f) {
      out += letter;
    } else {
      out += {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
    }
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t bytes_max = 60;
  return "'" + printable(text.substr(0, bytes_max)) + (text.size() > bytes_max ? "'..." : "'");
}

}  // namespace cedar::topology
