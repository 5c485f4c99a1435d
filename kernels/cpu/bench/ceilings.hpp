// What the processor can do at most, for bench/kernels.cpp: measured in the same run.
#pragma once

#include <algorithm>

#include "kernels/base/buffer.hpp"

namespace cedar::kernels::bench {

/// CPU time of the calling thread.
double cpu_seconds();

/// The best CPU time of several calls.
template <class Call>
double best_seconds(int runs, const Call& call) {
  double best = 1e9;
  for (int run = 0; run < runs; ++run) {
    const double start = cpu_seconds();
    call();
    best = std::min(best, cpu_seconds() - start);
  }
  return best;
}

/// GB/s of reading the pool, which is larger than the caches, in as many streams as are best.
double read_bandwidth(const buffer& pool);

/// GFLOP/s of fused multiply-adds in the registers of AVX-512 or AVX2.
double peak(bool avx512);

}  // namespace cedar::kernels::bench
