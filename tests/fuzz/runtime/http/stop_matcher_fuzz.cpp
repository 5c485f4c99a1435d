// The input is lines: stop strings, and last the text, in which a byte 0x01 is where a piece ends.
// However the text is cut, what is let through is what the definition says of the whole.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/check.hpp"
#include "runtime/http/stop_matcher.hpp"
#include "tests/support/fuzz_driver.hpp"

namespace cedar::test {

fuzz_material fuzz_corpus() {
  return {{"END.\nthe EN\x01TEN\x01"
           "D. more",
           "ab\nb\nabab\naab\x01"
           "abb",
           "</s>\n<\x01/\x01s\x01",
           "aa\naaa\naaaa\n\x01"
           "aa",
           "x\n"},
          {"\x01", "\n", "a", "ab", "ba", "</", "EN"}};
}

}  // namespace cedar::test

namespace {

constexpr char piece_end = '\x01';

struct input {
  std::vector<std::string> stops;
  std::string text;  ///< with the ends of its pieces
};

input input_of(std::string_view bytes) {
  input out;
  for (std::size_t end = bytes.find('\n'); end != bytes.npos; end = bytes.find('\n')) {
    if (end > 0) out.stops.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
  }
  out.text = bytes;
  return out;
}

/// The shortest beginning that ends with a stop string, without the longest that it ends with.
std::string defined(const std::vector<std::string>& stops, const std::string& text) {
  for (std::size_t bytes = 1; bytes <= text.size(); ++bytes) {
    std::size_t longest = 0;
    for (const std::string& stop : stops)
      if (std::string_view(text).substr(0, bytes).ends_with(stop))
        longest = std::max(longest, stop.size());
    if (longest > 0) return text.substr(0, bytes - longest);
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t bytes_max = 2048;  // the definition takes the square of it
  input given = input_of({reinterpret_cast<const char*>(data), std::min(size, bytes_max)});
  cedar::http::stop_matcher matcher(given.stops);
  std::string passed;
  for (std::size_t begin = 0; begin <= given.text.size();) {
    const std::size_t end = std::min(given.text.find(piece_end, begin), given.text.size());
    passed += matcher.push(std::string_view(given.text).substr(begin, end - begin));
    begin = end + 1;
  }
  passed += matcher.finish();
  std::erase(given.text, piece_end);
  const std::string expected = defined(given.stops, given.text);
  CEDAR_ASSERT(passed == expected, passed);
  CEDAR_ASSERT(matcher.stopped() == (expected != given.text), "stopped");
  return 0;
}
