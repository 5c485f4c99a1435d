// The judge of accuracy: every kernel as its formula is written, scalar, in double, rounded exactly
// where the released reference code rounds and nowhere else.
//
// 1. It shares nothing with other backends but the argument types: a mistake in a shared helper
//    would be invisible.
// 2. It is slow on purpose. It uses the host's <cmath>, so its bits may differ between machines;
// use
//    `cpu` where bits matter.
#pragma once

#include <memory>

#include "kernels/ops/backend.hpp"

namespace cedar::kernels {

/// Stateless; usable from several threads at once.
std::unique_ptr<backend> make_reference_backend();

}  // namespace cedar::kernels
