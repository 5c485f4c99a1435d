// hc_transition against the operations that it is made of, at released width: thread CPU time of
// one thread, best of many runs, the two in turns. A row alone finds no weights in the cache.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "kernels/cpu/cpu_backend.hpp"

namespace {

using namespace cedar::kernels;

constexpr std::size_t width = 5120;
constexpr std::size_t streams = 4;
constexpr std::size_t outputs = (2 + streams) * streams;
/// More than a processor's caches hold.
constexpr std::size_t flushed_bytes = std::size_t{64} << 20;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class T>
matrix_buffer<T> random_matrix(std::size_t rows, std::size_t cols, float scale) {
  static std::mt19937 engine(1);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  matrix_buffer<T> out(rows, cols);
  for (T& value : out.span())
    if constexpr (std::is_same_v<T, bf16>)
      value = to_bf16(uniform(engine));
    else
      value = uniform(engine);
  return out;
}

struct sublayers {
  explicit sublayers(std::size_t rows)
      : x(random_matrix<bf16>(rows, streams * width, 1)),
        y(random_matrix<bf16>(rows, width, 1)),
        norm(random_matrix<bf16>(1, width, 1)),
        input(rows, width),
        codes(rows, width),
        scales(rows, width / 32),
        post(random_matrix<float>(rows, streams, 0.5F)),
        combine(random_matrix<float>(rows, streams * streams, 0.5F)),
        fn(random_matrix<float>(outputs, streams * width, 0.1F)),
        base(random_matrix<float>(1, outputs, 1)),
        scale(random_matrix<float>(1, 3, 0.01F)),
        next_pre(rows, streams),
        next_post(rows, streams),
        next_combine(rows, streams * streams) {}

  hc_transition_arguments arguments() {
    return {{x.view(), x.view(), y.view(), post.view(), combine.view()},
            post.view(),
            norm.span(),
            1e-20F,
            input.view(),
            codes.view(),
            scales.view(),
            fn.view(),
            base.span(),
            scale.span(),
            20,
            1e-6F,
            next_pre.view(),
            next_post.view(),
            next_combine.view()};
  }

  matrix_buffer<bf16> x, y, norm, input;
  matrix_buffer<std::uint8_t> codes, scales;
  matrix_buffer<float> post, combine, fn, base, scale, next_pre, next_post, next_combine;
};

void compare(const backend& cpu, std::size_t rows) {
  sublayers all(rows);
  std::vector<char> other(flushed_bytes);
  double fused = 1;
  double separate = 1;
  for (std::size_t run = 0; run < 10 + 20 / rows; ++run)
    for (const bool together : {true, false}) {
      if (rows == 1)
        for (char& byte : other) ++byte;
      const hc_transition_arguments a = all.arguments();
      const double begin = thread_seconds();
      if (together) {
        cpu.hc_transition(a);
      } else {
        cpu.hc_expand(a.expand);
        cpu.hc_collapse(a.collapse_part());
        cpu.rms_norm_quantize(a.norm_part());
        cpu.hc_coefficients(a.coefficients_part());
      }
      double& best = together ? fused : separate;
      best = std::min(best, thread_seconds() - begin);
    }
  const double each = 1e6 / static_cast<double>(rows);
  std::printf("%4zu rows: fused %6.1f us a row, separate %6.1f\n", rows, fused * each,
              separate * each);
}

}  // namespace

int main() {
  const auto cpu = cedar::kernels::make_cpu_backend();
  for (const std::size_t rows : {1U, 6U, 24U, 128U, 512U}) compare(*cpu, rows);
}
