// How much memory the units of a plan need, from the configuration alone: no checkpoint is read.
//
// Weights and KV are what a stage holds, to the byte; a test compares them with real stages. What a
// step works with is an estimate to the safe side, and credit is what may arrive at once, not what
// is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/plan/plan.hpp"

namespace cedar::topology {

/// Requests that are served at a time, and positions of each.
struct memory_load {
  std::uint32_t requests = 0;
  std::uint32_t positions = 0;
};

/// Bytes.
struct memory_need {
  std::uint64_t weights = 0;  ///< tensors of the units, as they lie in the checkpoint
  /// Window rings, pages of global KV, pending compressor rows; embeddings of images.
  std::uint64_t kv = 0;
  std::uint64_t working = 0;  ///< activations of the largest step and messages before they leave
  std::uint64_t credit = 0;  ///< messages that may wait at the units for their step

  std::uint64_t total() const noexcept { return weights + kv + working + credit; }
  memory_need& operator+=(const memory_need& other) noexcept;
  friend bool operator==(const memory_need&, const memory_need&) = default;
};

/// The load that the plan's limits allow: what `device.memory` is checked against.
memory_load largest_load(const plan& planned) noexcept;

/// By unit. Positions beyond the plan's context count as the context.
std::vector<memory_need> memory_of_units(const plan& planned, const memory_load& load);
/// By device; the scheduler has none.
std::vector<memory_need> memory_of_devices(const plan& planned, const memory_load& load);

/// Global KV that a stage keeps of an owner of this ratio, its own or a replica, for the load:
/// whole pages, no more than the plan's budget.
std::uint64_t global_bytes(const plan& planned, std::uint32_t ratio, bool entries, bool keys,
                           const memory_load& load);

/// "17.3 GiB", "512 B": three significant digits.
std::string bytes_text(std::uint64_t bytes);

}  // namespace cedar::topology
