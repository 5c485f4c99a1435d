#include "kernels/cpu/bench/ceilings.hpp"

#include <immintrin.h>
#include <time.h>

namespace cedar::kernels::bench {

namespace {

/// Keeps the compiler from leaving out what a loop computed.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "m"(value));
}

constexpr std::size_t prefetch_vectors = 32;  // 1 KiB ahead

/// The pool is read as `streams` parts side by side.
double read_seconds(const buffer& pool, std::size_t streams) {
  __m256i sum[4] = {};
  const double seconds = best_seconds(3, [&] {
    const std::size_t vectors = pool.bytes() / 32 / streams;
    const auto* data = reinterpret_cast<const __m256i*>(pool.data());
    for (std::size_t i = 0; i < vectors; i += 4)
      for (std::size_t stream = 0; stream < streams; ++stream) {
        const __m256i* at = data + stream * vectors + i;
        for (std::size_t j = 0; j < 4; j += 2) _mm_prefetch(at + j + prefetch_vectors, _MM_HINT_T0);
        for (std::size_t j = 0; j < 4; ++j)
          sum[j] = _mm256_xor_si256(sum[j], _mm256_load_si256(at + j));
      }
  });
  for (const __m256i& part : sum) keep(part);
  return seconds;
}

constexpr std::size_t peak_steps = 100000;

double peak_avx2() {
  __m256 sums[12] = {};
  const __m256 factor = _mm256_set1_ps(0.5F);
  const double seconds = best_seconds(8, [&] {
    for (std::size_t step = 0; step < peak_steps; ++step)
#pragma GCC unroll 12
      for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, factor);
  });
  for (const __m256& sum : sums) keep(sum);
  return 1e-9 * static_cast<double>(peak_steps * 12 * 8 * 2) / seconds;
}

__attribute__((target("avx512f"))) void multiply_avx512(__m512 (&sums)[24]) {
  const __m512 factor = _mm512_set1_ps(0.5F);
  for (std::size_t step = 0; step < peak_steps; ++step)
#pragma GCC unroll 24
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, factor);
}

double peak_avx512() {
  __m512 sums[24] = {};
  const double seconds = best_seconds(8, [&] { multiply_avx512(sums); });
  keep(sums);
  return 1e-9 * static_cast<double>(peak_steps * 24 * 16 * 2) / seconds;
}

}  // namespace

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double read_bandwidth(const buffer& pool) {
  double best = 1e9;
  for (const std::size_t streams : {1U, 4U, 8U, 16U})
    best = std::min(best, read_seconds(pool, streams));
  return 1e-9 * static_cast<double>(pool.bytes()) / best;
}

double peak(bool avx512) {
  return avx512 ? peak_avx512() : peak_avx2();
}

}  // namespace cedar::kernels::bench
