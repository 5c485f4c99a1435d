// Measures what the number of virtual lanes of a dot product costs, 8 (one 256-bit register) or 16
// (two), in matrix-vector and matrix-matrix products of FP8 and bf16 weights, AVX2 + FMA.
//
// Matrix-vector: as many weight rows side by side as make 8 chains of fused multiply-adds (8 rows x
// 1 register, 4 x 2). Matrix-matrix, weights decoded once for 24 rows, 512 columns at a time: 12
// chains (4 weight rows x 3 x 1 register, 3 x 2 x 2), and 16 lanes in two passes of the 8-lane
// tile, which needs lanes 0..7 of a chunk stored before lanes 8..15. Block scales are left out:
// they cost both the same. Times are CPU time of the thread, best of many runs.
#include <immintrin.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr std::size_t chunk = 512;
constexpr std::size_t x_rows = 24;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct fp8 {
  using code = std::uint8_t;
  static __m256 widen(const code* w) {
    const __m128i wide = _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(w)));
    const __m128i mask = _mm_set1_epi16(static_cast<short>(0xbfff));
    return _mm256_cvtph_ps(_mm_and_si128(_mm_slli_epi16(wide, 7), mask));
  }
};

struct bf16 {
  using code = std::uint16_t;
  static __m256 widen(const code* w) {
    const __m128i narrow = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(narrow), 16));
  }
};

float add_lanes(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

template <class Format, std::size_t Registers>
void matrix_vector(const typename Format::code* w, const float* x, float* y, std::size_t rows,
                   std::size_t k) {
  constexpr std::size_t strip = 8 / Registers;
  for (std::size_t o = 0; o + strip <= rows; o += strip) {
    __m256 sums[strip][Registers] = {};
    for (std::size_t i = 0; i < k; i += 8 * Registers)
      for (std::size_t g = 0; g < Registers; ++g) {
        const __m256 xs = _mm256_loadu_ps(x + i + 8 * g);
#pragma GCC unroll 8
        for (std::size_t r = 0; r < strip; ++r)
          sums[r][g] = _mm256_fmadd_ps(Format::widen(w + (o + r) * k + i + 8 * g), xs, sums[r][g]);
      }
    for (std::size_t r = 0; r < strip; ++r) {
      __m256 sum = sums[r][0];
      for (std::size_t g = 1; g < Registers; ++g) sum = _mm256_add_ps(sum, sums[r][g]);
      y[o + r] = add_lanes(sum);
    }
  }
}

/// One register tile over `length` columns; x rows lie `k` apart, decoded weight rows `chunk`.
/// sums [W][X][Registers] are loaded and stored.
template <std::size_t W, std::size_t X, std::size_t Registers>
void tile(const float* w, const float* x, std::size_t k, std::size_t length, __m256* sums) {
  __m256 s[W][X][Registers];
  for (std::size_t a = 0; a < W; ++a)
    for (std::size_t b = 0; b < X; ++b)
      for (std::size_t g = 0; g < Registers; ++g) s[a][b][g] = sums[(a * X + b) * Registers + g];
  for (std::size_t i = 0; i < length; i += 8 * Registers)
#pragma GCC unroll 2
    for (std::size_t g = 0; g < Registers; ++g) {
      __m256 xs[X];
#pragma GCC unroll 4
      for (std::size_t b = 0; b < X; ++b) xs[b] = _mm256_loadu_ps(x + b * k + i + 8 * g);
#pragma GCC unroll 4
      for (std::size_t a = 0; a < W; ++a) {
        const __m256 ws = _mm256_loadu_ps(w + a * chunk + i + 8 * g);
#pragma GCC unroll 4
        for (std::size_t b = 0; b < X; ++b) s[a][b][g] = _mm256_fmadd_ps(ws, xs[b], s[a][b][g]);
      }
    }
  for (std::size_t a = 0; a < W; ++a)
    for (std::size_t b = 0; b < X; ++b)
      for (std::size_t g = 0; g < Registers; ++g) sums[(a * X + b) * Registers + g] = s[a][b][g];
}

/// Lanes = 8 * Registers * Passes.
template <class Format, std::size_t W, std::size_t X, std::size_t Registers, std::size_t Passes>
void matrix_matrix(const typename Format::code* w, const float* x, float* y, std::size_t rows,
                   std::size_t k) {
  constexpr std::size_t tile_sums = W * X * Registers;
  alignas(32) static float decoded[W * chunk];
  static __m256 sums[x_rows / X * Passes * tile_sums];
  for (std::size_t o = 0; o + W <= rows; o += W) {
    std::fill(std::begin(sums), std::end(sums), _mm256_setzero_ps());
    for (std::size_t c = 0; c < k; c += chunk) {
      for (std::size_t r = 0; r < W; ++r)
        for (std::size_t i = 0; i < chunk; i += 8)
          _mm256_storeu_ps(
              decoded + r * chunk + i / 8 % Passes * (chunk / Passes) + i / (8 * Passes) * 8,
              Format::widen(w + (o + r) * k + c + i));
      for (std::size_t m = 0; m < x_rows; m += X)
        for (std::size_t pass = 0; pass < Passes; ++pass) {
          const std::size_t at = pass * (chunk / Passes);
          tile<W, X, Registers>(decoded + at, x + m * k + c + at, k, chunk / Passes,
                                sums + (m / X * Passes + pass) * tile_sums);
        }
    }
    for (std::size_t m = 0; m < x_rows; m += X)
      for (std::size_t a = 0; a < W; ++a)
        for (std::size_t b = 0; b < X; ++b) {
          __m256 sum = _mm256_setzero_ps();
          for (std::size_t pass = 0; pass < Passes; ++pass)
            for (std::size_t g = 0; g < Registers; ++g)
              sum = _mm256_add_ps(
                  sum, sums[(m / X * Passes + pass) * tile_sums + (a * X + b) * Registers + g]);
          y[(m + b) * rows + o + a] = add_lanes(sum);
        }
  }
}

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

template <class Format>
void measure(const char* name, std::size_t rows, std::size_t k, int runs) {
  std::vector<typename Format::code> w(rows * k);
  std::uint32_t seed = 1;
  for (auto& code : w) {
    seed = seed * 1664525U + 1013904223U;
    code = static_cast<typename Format::code>((seed >> 16) & (sizeof(code) == 1 ? 0xb7U : 0xbf7fU));
  }
  const std::vector<float> x(x_rows * k, 0.25F);
  std::vector<float> y(x_rows * rows);
  const double bytes = static_cast<double>(rows * k * sizeof(typename Format::code));
  const double operations = 2.0 * static_cast<double>(rows * k * x_rows);
  const auto vector = [&](auto run) {
    return 1e-9 * bytes / best_seconds(runs, [&] { run(w.data(), x.data(), y.data(), rows, k); });
  };
  const auto matrix = [&](auto run) {
    return 1e-9 * operations /
           best_seconds(runs, [&] { run(w.data(), x.data(), y.data(), rows, k); });
  };
  std::printf("%-5s %5zu | %6.1f %6.1f | %6.1f %6.1f %6.1f\n", name, rows,
              vector(matrix_vector<Format, 1>), vector(matrix_vector<Format, 2>),
              matrix(matrix_matrix<Format, 4, 3, 1, 1>), matrix(matrix_matrix<Format, 3, 2, 2, 1>),
              matrix(matrix_matrix<Format, 4, 3, 1, 2>));
}

}  // namespace

int main() {
  std::puts(
      "weights, 5120 columns | matrix-vector GB/s: 8, 16 lanes |"
      " 24 rows GFLOP/s: 8, 16, 16 lanes in two passes");
  measure<fp8>("fp8", 48, 5120, 400);
  measure<fp8>("fp8", 5112, 5120, 20);
  measure<bf16>("bf16", 24, 5120, 400);
  measure<bf16>("bf16", 5112, 5120, 20);
}
