#include "tests/support/effort.hpp"

namespace cedar::test {

int seeds_count(int of_a_release) noexcept {
#ifdef CEDAR_TESTS_SANITIZED
  return (of_a_release + 7) / 8;
#else
  return of_a_release;
#endif
}

}  // namespace cedar::test
