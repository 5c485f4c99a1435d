// What sampling options must satisfy, for everybody who takes them from somebody else.
#pragma once

#include "runtime/base/result.hpp"
#include "runtime/flow/sampling.hpp"

namespace cedar::flow {

/// Errors: invalid_argument, naming the option, its value and what is allowed.
result<void> check(const sampling_options& options, std::uint32_t vocabulary);

}  // namespace cedar::flow
