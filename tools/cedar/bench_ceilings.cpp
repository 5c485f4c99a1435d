#include "tools/cedar/bench_ceilings.hpp"

#include <immintrin.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <iterator>
#include <thread>
#include <vector>

namespace cedar::tools {

namespace {

#define CEDAR_AVX512 __attribute__((target("avx512f")))
#define CEDAR_AVX2 __attribute__((target("avx2,fma")))

/// Reads `bytes` as `Streams` parts side by side, asking for what lies `Ahead` bytes further on;
/// gives something that depends on all of it.
template <std::size_t Streams, std::size_t Ahead>
CEDAR_AVX512 std::int64_t read_512(const std::byte* data, std::size_t bytes) {
  const std::size_t part = bytes / Streams / 128 * 128;
  __m512i sums[2 * Streams] = {};
  for (std::size_t at = 0; at < part; at += 128)
#pragma GCC unroll 8
    for (std::size_t s = 0; s < Streams; ++s) {
      const std::byte* const from = data + s * part + at;
      if constexpr (Ahead != 0) {
        _mm_prefetch(reinterpret_cast<const char*>(from + Ahead), _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(from + Ahead + 64), _MM_HINT_T0);
      }
      sums[2 * s] = _mm512_xor_si512(sums[2 * s], _mm512_loadu_si512(from));
      sums[2 * s + 1] = _mm512_xor_si512(sums[2 * s + 1], _mm512_loadu_si512(from + 64));
    }
  for (std::size_t s = 1; s < 2 * Streams; ++s) sums[0] = _mm512_xor_si512(sums[0], sums[s]);
  alignas(64) std::array<std::int64_t, 8> lanes;
  _mm512_store_si512(lanes.data(), sums[0]);
  return lanes[0] ^ lanes[3] ^ lanes[7];
}

template <std::size_t Streams, std::size_t Ahead>
CEDAR_AVX2 std::int64_t read_256(const std::byte* data, std::size_t bytes) {
  const std::size_t part = bytes / Streams / 64 * 64;
  __m256i sums[2 * Streams] = {};
  for (std::size_t at = 0; at < part; at += 64)
#pragma GCC unroll 8
    for (std::size_t s = 0; s < Streams; ++s) {
      const auto* const from = reinterpret_cast<const __m256i*>(data + s * part + at);
      if constexpr (Ahead != 0)
        _mm_prefetch(reinterpret_cast<const char*>(from) + Ahead, _MM_HINT_T0);
      sums[2 * s] = _mm256_xor_si256(sums[2 * s], _mm256_loadu_si256(from));
      sums[2 * s + 1] = _mm256_xor_si256(sums[2 * s + 1], _mm256_loadu_si256(from + 1));
    }
  for (std::size_t s = 1; s < 2 * Streams; ++s) sums[0] = _mm256_xor_si256(sums[0], sums[s]);
  alignas(32) std::array<std::int64_t, 4> lanes;
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes.data()), sums[0]);
  return lanes[0] ^ lanes[3];
}

/// `rounds` times one multiply-add in each of 16 chains: two units of four cycles each need 8.
constexpr std::size_t chains = 16;

CEDAR_AVX512 float multiply_512(std::size_t rounds) {
  __m512 sums[chains];
  for (std::size_t c = 0; c < chains; ++c) sums[c] = _mm512_set1_ps(static_cast<float>(c));
  const __m512 factor = _mm512_set1_ps(0.5F);
  const __m512 term = _mm512_set1_ps(1.0F);
  for (std::size_t round = 0; round < rounds; ++round)
#pragma GCC unroll 16
    for (std::size_t c = 0; c < chains; ++c) sums[c] = _mm512_fmadd_ps(sums[c], factor, term);
  for (std::size_t c = 1; c < chains; ++c) sums[0] = _mm512_add_ps(sums[0], sums[c]);
  alignas(64) std::array<float, 16> lanes;
  _mm512_store_ps(lanes.data(), sums[0]);
  return lanes[0] + lanes[15];
}

/// 12 chains: with their two operands they fit 16 registers.
CEDAR_AVX2 float multiply_256(std::size_t rounds) {
  constexpr std::size_t narrow_chains = 12;
  __m256 sums[narrow_chains];
  for (std::size_t c = 0; c < narrow_chains; ++c) sums[c] = _mm256_set1_ps(static_cast<float>(c));
  const __m256 factor = _mm256_set1_ps(0.5F);
  const __m256 term = _mm256_set1_ps(1.0F);
  for (std::size_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (std::size_t c = 0; c < narrow_chains; ++c)
      sums[c] = _mm256_fmadd_ps(sums[c], factor, term);
  for (std::size_t c = 1; c < narrow_chains; ++c) sums[0] = _mm256_add_ps(sums[0], sums[c]);
  alignas(32) std::array<float, 8> lanes;
  _mm256_store_ps(lanes.data(), sums[0]);
  return lanes[0] + lanes[7];
}

struct read_way {
  const char* name;
  bool wide;
  std::int64_t (*read)(const std::byte* data, std::size_t bytes);
};

constexpr read_way read_ways[] = {
    {"512 bits, 1 stream", true, read_512<1, 0>},
    {"512 bits, 1 stream, 1 KiB ahead", true, read_512<1, 1024>},
    {"512 bits, 1 stream, 4 KiB ahead", true, read_512<1, 4096>},
    {"512 bits, 2 streams", true, read_512<2, 0>},
    {"512 bits, 4 streams", true, read_512<4, 0>},
    {"512 bits, 4 streams, 1 KiB ahead", true, read_512<4, 1024>},
    {"512 bits, 8 streams", true, read_512<8, 0>},
    {"512 bits, 8 streams, 1 KiB ahead", true, read_512<8, 1024>},
    {"256 bits, 1 stream", false, read_256<1, 0>},
    {"256 bits, 1 stream, 1 KiB ahead", false, read_256<1, 1024>},
    {"256 bits, 1 stream, 4 KiB ahead", false, read_256<1, 4096>},
    {"256 bits, 4 streams", false, read_256<4, 0>},
    {"256 bits, 4 streams, 1 KiB ahead", false, read_256<4, 1024>},
};

struct fma_way {
  const char* name;
  bool wide;
  std::size_t operations;  ///< of a round
  float (*multiply)(std::size_t rounds);
};

constexpr fma_way fma_ways[] = {
    {"512 bits", true, chains * 16 * 2, multiply_512},
    {"256 bits", false, 12 * 8 * 2, multiply_256},
};

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Keeps what was computed from being left out.
template <class Value>
void keep(Value value) {
  asm volatile("" : : "g"(value) : "memory");
}

/// Seconds that `part(i)` takes on `threads` threads, from the beginning of all to the end of the
/// last.
template <class Part>
double seconds_together(std::uint32_t threads, const Part& part) {
  if (threads == 1) return seconds_of(1, [&] { part(0); });
  std::vector<double> begin(threads);
  std::vector<double> end(threads);
  std::barrier together(threads);
  const auto run = [&](std::uint32_t index) {
    together.arrive_and_wait();
    begin[index] = wall_seconds();
    part(index);
    end[index] = wall_seconds();
  };
  {
    std::vector<std::jthread> others;
    for (std::uint32_t i = 1; i < threads; ++i) others.emplace_back(run, i);
    run(0);
  }
  return *std::ranges::max_element(end) - *std::ranges::min_element(begin);
}

double read_rate(const read_way& way, stream_memory& memory, std::uint32_t threads,
                 std::size_t bytes) {
  const std::size_t share = bytes / threads / 4096 * 4096;
  const std::byte* const data = memory.next(share * threads);
  const double seconds = seconds_together(
      threads, [&](std::uint32_t index) { keep(way.read(data + index * share, share)); });
  return static_cast<double>(share * threads) / seconds;
}

double fma_rate(const fma_way& way, std::uint32_t threads) {
  constexpr std::size_t rounds = 250'000;  // a millisecond
  const double seconds =
      seconds_together(threads, [&](std::uint32_t) { keep(way.multiply(rounds)); });
  return static_cast<double>(rounds * way.operations * threads) / seconds;
}

}  // namespace

double seconds_now(std::uint32_t threads) {
  return threads == 1 ? thread_seconds() : wall_seconds();
}

double seconds_of(std::uint32_t threads, const std::function<void()>& call) {
  const double begin = seconds_now(threads);
  call();
  return seconds_now(threads) - begin;
}

ceilings::ceilings(stream_memory& memory, std::uint32_t threads, bool narrow)
    : memory_(memory), threads_(threads) {
  calibrate(narrow || __builtin_cpu_supports("avx512f") == 0);
}

void ceilings::calibrate(bool narrow) {
  constexpr int tries = 4;
  const std::size_t bytes = std::min(memory_.bytes(), std::size_t{64} << 20);
  for (int attempt = 0; attempt < tries; ++attempt) {
    for (std::size_t i = 0; i < std::size(read_ways); ++i) {
      if (narrow && read_ways[i].wide) continue;
      const double rate = read_rate(read_ways[i], memory_, threads_, bytes);
      if (rate > best_read_) best_read_ = rate, read_way_ = i;
    }
    for (std::size_t i = 0; i < std::size(fma_ways); ++i) {
      if (narrow && fma_ways[i].wide) continue;
      const double rate = fma_rate(fma_ways[i], threads_);
      if (rate > best_fma_) best_fma_ = rate, fma_way_ = i;
    }
  }
}

double ceilings::read_sample(std::size_t bytes) {
  const double rate = read_rate(read_ways[read_way_], memory_, threads_, bytes);
  best_read_ = std::max(best_read_, rate);
  return rate;
}

double ceilings::fma_sample() {
  const double rate = fma_rate(fma_ways[fma_way_], threads_);
  best_fma_ = std::max(best_fma_, rate);
  return rate;
}

std::string ceilings::reading() const {
  return read_ways[read_way_].name;
}

std::string ceilings::multiplying() const {
  return fma_ways[fma_way_].name;
}

}  // namespace cedar::tools
