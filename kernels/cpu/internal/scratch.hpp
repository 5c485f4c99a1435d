// Working memory of a kernel call: a stack of blocks that belongs to the calling thread.
//
// 1. A `scratch` is a frame: what it hands out is valid until it is destroyed, frames nest.
// 2. Blocks are kept until the thread ends, so a thread allocates only until it has seen its
// largest
//    call. Contents are undefined.
// 3. Memory is aligned to 64 bytes.
#pragma once

#include <cstddef>
#include <type_traits>

namespace cedar::kernels::cpu {

class scratch {
 public:
  scratch();
  ~scratch();
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  template <class T>
  T* take(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    return static_cast<T*>(take_bytes(count * sizeof(T)));
  }

 private:
  static void* take_bytes(std::size_t bytes);

  std::size_t block_ = 0;  // where the thread's stack stood before this frame
  std::size_t used_ = 0;
};

}  // namespace cedar::kernels::cpu
