// The names of device/platform.cuh for a host compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <type_traits>

#include "kernels/cuda/device/launch_shape.hpp"
#include "kernels/cuda/emulation/block.hpp"
#include "kernels/cuda/emulation/matrices.hpp"
#include "kernels/cuda/emulation/numbers.hpp"

#define CEDAR_KERNEL(threads) inline
#define CEDAR_DEVICE inline
#define CEDAR_UNROLL
#define CEDAR_ANYWHERE inline

namespace cedar::kernels::cuda {

/// Work is done when launch returns.
struct stream_handle {};

/// Runs the grid, which may be empty, on the calling thread. Throws emulation::fault.
template <class... Parameters, class... Arguments>
void launch(const launch_shape& shape, stream_handle, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  emulation::run_grid(shape, [&] { kernel(static_cast<Parameters>(arguments)...); });
}

// ---- places ---------------------------------------------------------------------------------

inline unsigned thread_index() {
  return emulation::current_thread();
}
inline unsigned block_threads() {
  return emulation::current_launch().threads;
}
inline unsigned lane_index() {
  return thread_index() % warp_threads;
}
inline unsigned warp_index() {
  return thread_index() / warp_threads;
}
inline grid_extent block_index() {
  return emulation::current_block();
}
inline grid_extent grid_size() {
  return emulation::current_launch().grid;
}

// ---- shared memory --------------------------------------------------------------------------

template <class T>
class shared_array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  shared_array(emulation::shared_place place, std::size_t first, std::size_t count)
      : place_(place), first_(first), count_(count) {}

  T load(std::size_t index) const { return load_as<T>(index); }
  void store(std::size_t index, T value) const { store_as<T>(index, value); }

  /// The bytes of a U from element `index` on, which must be aligned for it.
  template <class U>
  U load_as(std::size_t index) const {
    U value;
    emulation::read_shared(place_, at<U>(index), sizeof(U), &value, thread_index());
    return value;
  }

  template <class U>
  void store_as(std::size_t index, const U& value) const {
    emulation::write_shared(place_, at<U>(index), sizeof(U), &value, thread_index());
  }

  /// Elements [first, first + count), as an array of its own.
  shared_array part(std::size_t first, std::size_t count) const {
    if (first + count > count_) out_of_bounds(first + count);
    return {place_, first_ + first, count};
  }

  // For the operations below: where `bytes` bytes from element `index` on lie in the array.
  std::size_t checked(std::size_t index, std::size_t bytes, std::size_t alignment) const {
    if (index * sizeof(T) + bytes > count_ * sizeof(T)) out_of_bounds(index);
    const std::size_t byte = (first_ + index) * sizeof(T);
    if ((place_.offset + byte) % alignment != 0)
      emulation::fail("touches shared " + text(index) + ", which is not aligned to " +
                      std::to_string(alignment) + " bytes");
    return byte;
  }
  const emulation::shared_place& place() const { return place_; }

 private:
  template <class U>
  std::size_t at(std::size_t index) const {
    static_assert(std::is_trivially_copyable_v<U> && sizeof(U) <= 16);
    return checked(index, sizeof(U), sizeof(U));
  }

  std::string text(std::size_t index) const {
    return std::string(place_.name) + "[" + std::to_string(first_ + index) + "]";
  }
  [[noreturn]] void out_of_bounds(std::size_t index) const {
    emulation::fail("touches shared " + text(index) + ", beyond its elements [" +
                    std::to_string(first_) + ", " + std::to_string(first_ + count_) + ")");
  }

  emulation::shared_place place_;
  std::size_t first_;
  std::size_t count_;
};

class dynamic_shared {
 public:
  template <class T>
  shared_array<T> take(std::size_t count, const char* name) {
    return {emulation::take_shared(name, count, sizeof(T)), 0, count};
  }
};

// ---- order and warps ------------------------------------------------------------------------

inline void sync_block(std::source_location where = std::source_location::current()) {
  emulation::meet_block(where);
}

inline void sync_warp(std::source_location where = std::source_location::current()) {
  emulation::meet_warp(where);
}

namespace emulation {

template <class T>
struct exchange {
  T value;
  unsigned source;
};

template <class T>
void run_exchange(lane_operands lanes) {
  T values[warp_threads];
  for (unsigned i = 0; i < warp_threads; ++i)
    values[i] = static_cast<const exchange<T>*>(lanes[i])->value;
  for (void* lane : lanes) {
    auto* one = static_cast<exchange<T>*>(lane);
    one->value = values[one->source % warp_threads];
  }
}

}  // namespace emulation

/// The value that lane `source` % 32 passes.
template <class T>
T shuffle(T value, unsigned source, std::source_location where = std::source_location::current()) {
  emulation::exchange<T> operands{value, source};
  emulation::meet_lanes("shuffle", &operands, emulation::run_exchange<T>, where);
  return operands.value;
}

template <class T>
T shuffle_xor(T value, unsigned mask,
              std::source_location where = std::source_location::current()) {
  emulation::exchange<T> operands{value, lane_index() ^ mask};
  emulation::meet_lanes("shuffle_xor", &operands, emulation::run_exchange<T>, where);
  return operands.value;
}

/// Bit i: what lane i passes.
inline std::uint32_t ballot(bool vote,
                            std::source_location where = std::source_location::current()) {
  std::uint32_t votes = vote ? 1U << lane_index() : 0;
  emulation::meet_lanes(
      "ballot", &votes,
      [](emulation::lane_operands lanes) {
        std::uint32_t all = 0;
        for (void* lane : lanes) all |= *static_cast<std::uint32_t*>(lane);
        for (void* lane : lanes) *static_cast<std::uint32_t*>(lane) = all;
      },
      where);
  return votes;
}

inline bool vote_any(bool vote, std::source_location where = std::source_location::current()) {
  return ballot(vote, where) != 0;
}

inline bool vote_all(bool vote, std::source_location where = std::source_location::current()) {
  return ballot(vote, where) == 0xffffffffU;
}

// ---- asynchronous copies --------------------------------------------------------------------

/// `from` must be aligned to Bytes unless valid_bytes is 0; zeros follow the valid bytes.
template <unsigned Bytes, class T>
void copy_async(const shared_array<T>& to, std::size_t index, const void* from,
                unsigned valid_bytes = Bytes) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  if (valid_bytes > Bytes) emulation::fail("copies more bytes than it says");
  if (valid_bytes > 0 && reinterpret_cast<std::uintptr_t>(from) % Bytes != 0)
    emulation::fail("copies from an address that is not aligned to the copy");
  emulation::start_copy(to.place(), to.checked(index, Bytes, Bytes), Bytes, from, valid_bytes);
}

inline void commit_copies() {
  emulation::commit_copies();
}

template <unsigned Left>
void wait_copies() {
  emulation::wait_copies(Left);
}

// ---- matrices -------------------------------------------------------------------------------

/// Lane i gives the place of row i % 8 of matrix i / 8 (8 rows of 16 bytes); lanes beyond 8 * Count
/// are not asked. Lane i gets bytes [4 * (i % 4), + 4) of row i / 4 of every matrix.
template <unsigned Count, class T>
void load_matrices(std::uint32_t (&to)[Count], const shared_array<T>& from, std::size_t index,
                   std::source_location where = std::source_location::current()) {
  static_assert(Count == 1 || Count == 2 || Count == 4);
  emulation::matrix_rows<Count> operands{{}, from.place(), 0};
  if (lane_index() < 8 * Count) operands.first = from.checked(index, 16, 16);
  emulation::meet_lanes("load_matrices", &operands, emulation::run_load<Count>, where);
  for (unsigned i = 0; i < Count; ++i) to[i] = operands.to[i];
}

/// The same of 16-bit elements, each matrix transposed: lane i gets elements (2 * (i % 4), i / 4)
/// and (2 * (i % 4) + 1, i / 4) of every matrix.
template <unsigned Count, class T>
void load_matrices_transposed(std::uint32_t (&to)[Count], const shared_array<T>& from,
                              std::size_t index,
                              std::source_location where = std::source_location::current()) {
  static_assert(Count == 2 && sizeof(T) == 2);
  emulation::matrix_rows<Count> operands{{}, from.place(), 0};
  if (lane_index() < 8 * Count) operands.first = from.checked(index, 16, 16);
  emulation::meet_lanes("load_matrices_transposed", &operands,
                        emulation::run_load_transposed<Count>, where);
  for (unsigned i = 0; i < Count; ++i) to[i] = operands.to[i];
}

/// c += a * b, a [16, 16] and b [16, 8] of bf16, fragments as PTX's mma.m16n8k16 has them.
inline void multiply_bf16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                          std::source_location where = std::source_location::current()) {
  emulation::fragments operands{c, a, b};
  emulation::meet_lanes("multiply_bf16", &operands, emulation::run_multiply_bf16, where);
}

/// c += a * b, a [16, 32] and b [32, 8] of E4M3, fragments as PTX's mma.m16n8k32 has them.
inline void multiply_e4m3(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                          std::source_location where = std::source_location::current()) {
  emulation::fragments operands{c, a, b};
  emulation::meet_lanes("multiply_e4m3", &operands, emulation::run_multiply_e4m3, where);
}

// ---- global memory --------------------------------------------------------------------------

/// A fault unless index < count; `what` names the view.
inline void require_within(std::size_t index, std::size_t count, const char* what) {
  if (index >= count)
    emulation::fail(std::string("touches ") + what + " " + std::to_string(index) + " of " +
                    std::to_string(count));
}

/// Returns what was there before. Blocks run one after the other here, lanes in order.
template <class T>
T atomic_add(T* to, T value) {
  const T before = *to;
  *to = static_cast<T>(before + value);
  return before;
}

template <class T>
T atomic_max(T* to, T value) {
  const T before = *to;
  if (before < value) *to = value;
  return before;
}

}  // namespace cedar::kernels::cuda
