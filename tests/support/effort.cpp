#include "tests/support/effort.hpp"

#include <algorithm>
#include <cstddef>

namespace cedar::test {

int seeds_count(int of_a_release) noexcept {
#ifdef CEDAR_TESTS_SANITIZED
  return (of_a_release + 7) / 8;
#else
  return of_a_release;
#endif
}

std::vector<std::string> placements_of(const std::vector<std::string>& of_a_release) {
#ifdef CEDAR_TESTS_SANITIZED
  static std::size_t next = 0;
  std::vector<std::string> out;
  while (out.size() < std::min<std::size_t>(2, of_a_release.size()))
    out.push_back(of_a_release[next++ % of_a_release.size()]);
  return out;
#else
  return of_a_release;
#endif
}

}  // namespace cedar::test
