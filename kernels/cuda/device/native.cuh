// The names of platform.cuh for nvcc: CUDA and PTX under our names, nothing else.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>

#include "kernels/base/check.hpp"
#include "kernels/cuda/device/launch_shape.hpp"

#define CEDAR_KERNEL(threads) __global__ __launch_bounds__(threads)
#define CEDAR_DEVICE __device__ __forceinline__
#define CEDAR_UNROLL _Pragma("unroll")
#define CEDAR_ANYWHERE __host__ __device__ __forceinline__

namespace cedar::kernels::cuda {

/// Where kernels are queued.
struct stream_handle {
  cudaStream_t native = nullptr;
  int device = 0;  ///< that it belongs to
  bool waits = false;  ///< launch returns when the kernel is done: the host reads what it wrote
};

/// More shared memory than this has to be asked for.
inline constexpr std::size_t shared_bytes_unasked = 48 << 10;

/// Queues the kernel on the stream; an empty grid is nothing to do. A launch that the runtime
/// refuses is a defect of ours; so is a kernel that fails, where the stream waits for it.
template <class... Parameters, class... Arguments>
void launch(const launch_shape& shape, stream_handle stream, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  const auto check = [&](cudaError_t status) {
    CEDAR_ASSERT(status == cudaSuccess,
                 std::string(shape.kernel) + ": " + cudaGetErrorString(status));
  };
  check(cudaSetDevice(stream.device));  // this thread may have used another one
  const auto* entry = reinterpret_cast<const void*>(kernel);
  if (shape.shared_bytes > shared_bytes_unasked)
    check(cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shape.shared_bytes)));
  std::tuple<Parameters...> values{static_cast<Parameters>(arguments)...};
  std::apply(
      [&](Parameters&... each) {
        void* addresses[] = {&each...};
        check(cudaLaunchKernel(entry, dim3(shape.grid.x, shape.grid.y, shape.grid.z),
                               dim3(shape.threads), addresses, shape.shared_bytes, stream.native));
      },
      values);
  if (stream.waits) check(cudaStreamSynchronize(stream.native));
}

// ---- places ---------------------------------------------------------------------------------

CEDAR_DEVICE unsigned thread_index() {
  return threadIdx.x;
}
CEDAR_DEVICE unsigned block_threads() {
  return blockDim.x;
}
CEDAR_DEVICE unsigned lane_index() {
  return threadIdx.x % warp_threads;
}
CEDAR_DEVICE unsigned warp_index() {
  return threadIdx.x / warp_threads;
}
CEDAR_DEVICE grid_extent block_index() {
  return {blockIdx.x, blockIdx.y, blockIdx.z};
}
CEDAR_DEVICE grid_extent grid_size() {
  return {gridDim.x, gridDim.y, gridDim.z};
}

// ---- shared memory --------------------------------------------------------------------------

template <class T>
class shared_array {
 public:
  CEDAR_DEVICE explicit shared_array(T* data) : data_(data) {}

  CEDAR_DEVICE T load(std::size_t index) const { return data_[index]; }
  CEDAR_DEVICE void store(std::size_t index, T value) const { data_[index] = value; }
  template <class U>
  CEDAR_DEVICE U load_as(std::size_t index) const {
    return *reinterpret_cast<const U*>(data_ + index);
  }
  template <class U>
  CEDAR_DEVICE void store_as(std::size_t index, const U& value) const {
    *reinterpret_cast<U*>(data_ + index) = value;
  }
  CEDAR_DEVICE shared_array part(std::size_t first, std::size_t) const {
    return shared_array(data_ + first);
  }
  CEDAR_DEVICE unsigned address(std::size_t index) const {
    return static_cast<unsigned>(__cvta_generic_to_shared(data_ + index));
  }

 private:
  T* data_;
};

class dynamic_shared {
 public:
  template <class T>
  CEDAR_DEVICE shared_array<T> take(std::size_t count, const char*) {
    extern __shared__ __align__(shared_alignment) unsigned char memory[];
    T* data = reinterpret_cast<T*>(memory + used_);
    used_ += (count * sizeof(T) + shared_alignment - 1) / shared_alignment * shared_alignment;
    return shared_array<T>(data);
  }

 private:
  std::size_t used_ = 0;
};

// ---- order and warps ------------------------------------------------------------------------

inline constexpr unsigned all_lanes = 0xffffffffU;

CEDAR_DEVICE void sync_block() {
  __syncthreads();
}
CEDAR_DEVICE void sync_warp() {
  __syncwarp();
}
template <class T>
CEDAR_DEVICE T shuffle(T value, unsigned source) {
  return __shfl_sync(all_lanes, value, static_cast<int>(source));
}
template <class T>
CEDAR_DEVICE T shuffle_xor(T value, unsigned mask) {
  return __shfl_xor_sync(all_lanes, value, static_cast<int>(mask));
}
CEDAR_DEVICE std::uint32_t ballot(bool vote) {
  return __ballot_sync(all_lanes, vote);
}
CEDAR_DEVICE bool vote_any(bool vote) {
  return __any_sync(all_lanes, vote) != 0;
}
CEDAR_DEVICE bool vote_all(bool vote) {
  return __all_sync(all_lanes, vote) != 0;
}

// ---- asynchronous copies --------------------------------------------------------------------

template <unsigned Bytes, class T>
CEDAR_DEVICE void copy_async(const shared_array<T>& to, std::size_t index, const void* from,
                             unsigned valid_bytes = Bytes) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  if constexpr (Bytes == 16) {  // only these may bypass the first-level cache
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to.address(index)),
                 "l"(from), "r"(valid_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to.address(index)),
                 "l"(from), "n"(Bytes), "r"(valid_bytes)
                 : "memory");
  }
}
CEDAR_DEVICE void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <unsigned Left>
CEDAR_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

// ---- matrices -------------------------------------------------------------------------------

template <unsigned Count, class T>
CEDAR_DEVICE void load_matrices(std::uint32_t (&to)[Count], const shared_array<T>& from,
                                std::size_t index) {
  static_assert(Count == 1 || Count == 2 || Count == 4);
  const unsigned row = from.address(index);
  if constexpr (Count == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(to[0])
                 : "r"(row)
                 : "memory");
  } else if constexpr (Count == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(row)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
  }
}

template <unsigned Count, class T>
CEDAR_DEVICE void load_matrices_transposed(std::uint32_t (&to)[Count], const shared_array<T>& from,
                                           std::size_t index) {
  static_assert(Count == 2 && sizeof(T) == 2);
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(from.address(index))
               : "memory");
}

CEDAR_DEVICE void multiply_bf16(float (&c)[4], const std::uint32_t (&a)[4],
                                const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

CEDAR_DEVICE void multiply_e4m3(float (&c)[4], const std::uint32_t (&a)[4],
                                const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// ---- global memory --------------------------------------------------------------------------

CEDAR_DEVICE void require_within(std::size_t, std::size_t, const char*) {}

template <class T>
CEDAR_DEVICE T atomic_add(T* to, T value) {
  return atomicAdd(to, value);
}
template <class T>
CEDAR_DEVICE T atomic_max(T* to, T value) {
  return atomicMax(to, value);
}

// ---- numbers --------------------------------------------------------------------------------

CEDAR_DEVICE std::uint32_t bits_of(float value) {
  return __float_as_uint(value);
}
CEDAR_DEVICE float float_of(std::uint32_t bits) {
  return __uint_as_float(bits);
}
CEDAR_DEVICE float fused(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
CEDAR_DEVICE float divide(float a, float b) {
  return __fdiv_rn(a, b);
}
CEDAR_DEVICE float square_root(float x) {
  return __fsqrt_rn(x);
}
CEDAR_DEVICE float exponential(float x) {
  return expf(x);
}
CEDAR_DEVICE double normal_distribution(double x) {
  return normcdf(x);
}
CEDAR_DEVICE float logarithm_1p(float x) {
  return log1pf(x);
}
CEDAR_DEVICE void sine_cosine(float angle, float& sine, float& cosine) {
  sincosf(angle, &sine, &cosine);
}

}  // namespace cedar::kernels::cuda
