// Defects: conditions that only a mistake in cedar (or in its caller) can violate.
//
// 1. CEDAR_REQUIRE checks what the caller promised, CEDAR_ASSERT what this code promised itself.
// 2. Both are active in every build type; both throw cedar::defect with the text and the place.
// 3. Nobody catches a defect below the boundary of an actor, or of the local service's thread (tests
//    excepted): what runs there ends, and whoever supervises it fails the requests that it held.
// Expected failures (a missing file, a lost peer) are runtime/base/result.hpp's business, not this.
#pragma once

#include <stdexcept>
#include <string>

namespace cedar {

/// A broken promise inside the program. what() names the condition, the file and the line.
class defect : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] void throw_defect(const char* kind, const char* condition, const char* file, int line,
                               const std::string& message);
}  // namespace detail

}  // namespace cedar

/// CEDAR_REQUIRE(condition, message): `message` is any expression convertible to std::string and is
/// evaluated only on failure.
#define CEDAR_REQUIRE(condition, message)                                                       \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      ::cedar::detail::throw_defect("requirement", #condition, __FILE__, __LINE__, (message));  \
  } while (false)

#define CEDAR_ASSERT(condition, message)                                                        \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      ::cedar::detail::throw_defect("assertion", #condition, __FILE__, __LINE__, (message));    \
  } while (false)
