// The fast backend of the host's processor: every kernel with vector instructions, in the canonical
// order of summation (canonical_sum.hpp) and with the canonical functions (canonical_math.hpp), so
// that a result has the same bits on every machine, in every batch and on every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/base/placement.hpp"
#include "kernels/ops/backend.hpp"

namespace cedar::kernels {

/// True if this machine has what the code is compiled for: x86-64-v3 (AVX2, FMA, F16C, BMI2).
bool cpu_backend_supported();

/// Slots that a backend's pool may have.
inline constexpr std::uint32_t cpu_threads_max = 256;

/// The least work that is divided off, in elements of a weight row times a row of x (about 0.08 ns
/// each, so 20 us): README.md says why.
inline constexpr std::size_t cpu_grain = std::size_t{1} << 18;

/// A backend whose calls are divided among up to `threads` threads, the calling one included; with
/// one, everything runs on the caller's and no thread is ever started. Usable from several threads
/// at once: their calls share the pool, and each thread keeps a scratch memory of its own. Nothing
/// is divided into pieces of less than `grain`. No result depends on either. Every thread that
/// computes, be it a caller's, is put where `placement` says and stays there after the call; a
/// caller belongs to one backend with a placement, therefore. Requires cpu_backend_supported(),
/// 1 <= threads <= cpu_threads_max, grain > 0, usable processors and nice <= 19.
std::unique_ptr<backend> make_cpu_backend(std::uint32_t threads = 1, std::size_t grain = cpu_grain,
                                          const thread_placement& placement = {});

}  // namespace cedar::kernels
