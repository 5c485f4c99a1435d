// The names that device code is written in. One source, two compilers: nvcc gives them to the
// device (native.cuh, thin wrappers of CUDA and PTX), a host compiler to the emulation, which runs
// the same kernels and checks them. No other file asks which of the two is at work.
//
//   kernels    CEDAR_KERNEL(threads) void name(arguments by value)
//              launch(shape, stream, name, arguments...), an empty grid is nothing to do
//   functions  CEDAR_DEVICE: for kernels; CEDAR_ANYWHERE: for kernels and the host
//   loops      CEDAR_UNROLL in front of one whose index selects registers
//   places     thread_index, block_threads, lane_index, warp_index, block_index, grid_size
//   shared     dynamic_shared: take<T>(count, name), in the same order by all threads of a block
//              shared_array<T>: load, store, load_as<U>, store_as<U>, part
//   order      sync_block, sync_warp: by all threads, at one place in the source
//   warps      shuffle, shuffle_xor, ballot, vote_any, vote_all: by all lanes
//   copies     copy_async<Bytes>(to, index, from, valid_bytes), commit_copies, wait_copies<Left>
//   matrices   load_matrices<1, 2 or 4>, load_matrices_transposed<2>,
//              multiply_bf16 (m16n8k16), multiply_e4m3 (m16n8k32)
//   memory     atomic_add, atomic_max on global memory; require_within for views of it
//   numbers    fused, divide, square_root, exponential, logarithm_1p, sine_cosine,
//              normal_distribution(double), bits_of(float), float_of(bits)
//
// Arithmetic is IEEE binary32 without contraction (nvcc: --fmad=false) and without fast
// mathematics: `a * b + c` is two roundings, fused(a, b, c) one. Elementary functions are those of
// the platform (CUDA: at most 2 ulp), so their last bits differ between device and emulation.
#pragma once

#include "kernels/cuda/device/launch_shape.hpp"

#ifdef __CUDACC__
#include "kernels/cuda/device/native.cuh"
#else
#include "kernels/cuda/emulation/platform.hpp"
#endif
