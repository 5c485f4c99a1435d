// Devices that plans are judged on: those that exist, and random ones between little and much.
#pragma once

#include <random>
#include <vector>

#include "kernels/plan/device_limits.hpp"

namespace cedar::test {

/// A device of each generation, and one that shows but a part of its multiprocessors.
inline std::vector<kernels::plan::device_limits> known_devices() {
  kernels::plan::device_limits part = kernels::plan::h200;
  part.multiprocessors = 16;
  return {kernels::plan::h200, kernels::plan::b200, part};
}

inline kernels::plan::device_limits random_device(std::mt19937& random) {
  kernels::plan::device_limits out = kernels::plan::h200;
  const auto any = [&](std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random);
  };
  out.multiprocessors = any(1, 200);
  out.shared_bytes_per_block = 1024 * any(99, 227);
  out.shared_bytes_per_multiprocessor = out.shared_bytes_per_block + 1024 * any(1, 30);
  return out;
}

}  // namespace cedar::test
