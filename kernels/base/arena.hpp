// Scratch memory of one step: allocations are a pointer bump, all of them end together.
//
// 1. Views handed out by take() are valid until the next reset() (or until the mark they came after
// is
//    released).
// 2. Memory only grows while the largest step is still being discovered: reset() merges what was
//    needed into one block, so that steps of a size seen before do not allocate.
// 3. Not thread-safe: one arena belongs to one worker.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "kernels/base/matrix_view.hpp"

namespace cedar::kernels {

class arena {
 public:
  /// Uninitialised rows x cols elements, 64-byte aligned. T must be trivially copyable.
  template <class T>
  matrix_view<T> take(std::size_t rows, std::size_t cols) {
    return {reinterpret_cast<T*>(take_bytes(rows * cols * sizeof(T))), rows, cols};
  }

  /// Releases, when it goes out of scope, everything taken since it was made.
  class mark {
   public:
    explicit mark(arena& owner) : owner_(owner), block_(owner.block_), used_(owner.used_) {}
    ~mark() {
      owner_.block_ = block_;
      owner_.used_ = used_;
    }
    mark(const mark&) = delete;
    mark& operator=(const mark&) = delete;

   private:
    arena& owner_;
    std::size_t block_;
    std::size_t used_;
  };

  /// Forgets all allocations and keeps the memory.
  void reset();

  /// Bytes held from the system.
  std::size_t capacity_bytes() const noexcept;

 private:
  std::byte* take_bytes(std::size_t bytes);

  std::vector<buffer> blocks_;
  std::size_t block_ = 0;  ///< index of the block in use
  std::size_t used_ = 0;  ///< bytes used of it
};

}  // namespace cedar::kernels
