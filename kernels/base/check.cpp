#include "kernels/base/check.hpp"

namespace cedar::detail {

void throw_defect(const char* kind, const char* condition, const char* file, int line,
                  const std::string& message) {
  throw defect(std::string(kind) + " failed: " + message + " [" + condition + "] at " + file + ":" +
               std::to_string(line));
}

}  // namespace cedar::detail
