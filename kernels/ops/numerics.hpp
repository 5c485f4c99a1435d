// The name of the arithmetic that results depend on.
//
// Two processes give the same bits only if they agree on it; nodes compare it before they join. It
// changes with the reduction order, the elementary functions, the segment rule and the tie rules
// (kernels/README.md).
#pragma once

#include <string_view>

namespace cedar::kernels {

inline constexpr std::string_view numerics_id = "cedar-numerics-1";

}  // namespace cedar::kernels
