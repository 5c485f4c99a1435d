// What one sequence takes of a whole model's caches, by the allocators that stages use.
#pragma once

#include <cstdint>

#include "runtime/model/config.hpp"
#include "runtime/model/schedule.hpp"

namespace cedar::stage {

/// Bytes of one sequence. Only the pages grow with it.
struct cache_size {
  std::uint64_t pages = 0;  ///< of global KV: main entries and index keys of all owners
  std::uint64_t page_bytes = 0;
  std::uint64_t window_bytes = 0;  ///< rings of all layers, with their slack for drafts
  std::uint64_t pending_bytes = 0;  ///< rings of tokens that wait for their compressor group
  std::uint64_t draft_bytes = 0;  ///< rings of the draft blocks
  std::uint64_t tap_bytes = 0;  ///< rings of taps for drafts, where they are made and where used

  std::uint64_t global_bytes() const noexcept { return pages * page_bytes; }
  std::uint64_t fixed_bytes() const noexcept {
    return window_bytes + pending_bytes + draft_bytes + tap_bytes;
  }
};

/// Of a sequence of `positions` in one process, without replicas.
cache_size cache_of_sequence(const model::model_config& config, const model::schedule& schedule,
                             std::uint32_t positions);

}  // namespace cedar::stage
