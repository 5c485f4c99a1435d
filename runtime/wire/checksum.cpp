#include "runtime/wire/checksum.hpp"

#include <xxhash.h>

#include <memory>

#include "kernels/base/check.hpp"

namespace cedar::wire {

namespace {

struct free_state {
  void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
};

}  // namespace

std::uint64_t checksum_of(std::initializer_list<std::span<const std::byte>> parts) {
  // One state per thread: it is 576 aligned bytes, and frames come by the thousand.
  thread_local const std::unique_ptr<XXH3_state_t, free_state> state(XXH3_createState());
  CEDAR_ASSERT(state && XXH3_64bits_reset(state.get()) == XXH_OK, "no memory for a checksum");
  for (const std::span<const std::byte> part : parts) {
    if (part.empty()) continue;
    CEDAR_ASSERT(XXH3_64bits_update(state.get(), part.data(), part.size()) == XXH_OK, "checksum");
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace cedar::wire
