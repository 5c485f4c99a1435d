// Measures what a row of released size takes at an index source, on one thread: attention with 64
// heads of 512 over 128 + 512 entries, index scores of 32 heads of 128 over 2^20 keys in pages, and
// the choice among them. Random numbers; CPU time, best of many runs. An argument "avx2" keeps to
// AVX2 where there is AVX-512.
#include <hwy/targets.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string_view>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/ops/selection.hpp"

namespace {

using namespace cedar::kernels;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
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

matrix_buffer<bf16> normal_rows(std::size_t rows, std::size_t columns) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal;
  matrix_buffer<bf16> out(rows, columns);
  for (bf16& value : out.span()) value = to_bf16(normal(random));
  return out;
}

/// Packed entries of random vectors.
matrix_buffer<std::byte> entries_of(const backend& cpu, entry_format format, std::size_t count,
                                    std::size_t entry_width) {
  const matrix_buffer<bf16> x = normal_rows(count, entry_width);
  matrix_buffer<std::byte> out(count, entry_bytes(format, entry_width));
  cpu.pack_entries({x.view(), out.view(), format});
  return out;
}

std::vector<const std::byte*> pointers_to(const matrix_buffer<std::byte>& entries,
                                          std::size_t run = 1) {
  std::vector<const std::byte*> out;
  for (std::size_t i = 0; i < entries.rows(); i += run) out.push_back(entries.view().row_data(i));
  return out;
}

/// Attention of a row of released size.
struct attention_inputs {
  static constexpr std::size_t heads = 64;
  static constexpr std::size_t head_dim = 512;
  static constexpr std::size_t row_width = heads * head_dim;

  explicit attention_inputs(const backend& cpu)
      : window(entries_of(cpu, entry_format::fp8_e8m0_32, 128, head_dim)),
        selected(entries_of(cpu, entry_format::fp4_e4m3_16, 512, head_dim)) {}

  void run(const backend& cpu) {
    cpu.attention({o.view(), q.view(), {&lists, 1}, sinks, head_dim, 0.044F});
  }

  matrix_buffer<std::byte> window;
  matrix_buffer<std::byte> selected;
  std::vector<const std::byte*> window_pointers = pointers_to(window);
  std::vector<const std::byte*> selected_pointers = pointers_to(selected);
  attention_entries lists{window_pointers, selected_pointers};
  matrix_buffer<bf16> q = normal_rows(1, row_width);
  matrix_buffer<bf16> o{1, row_width};
  std::vector<float> sinks = std::vector<float>(heads, 0.0F);
};

void measure_attention(const backend& cpu) {
  attention_inputs inputs(cpu);
  const double seconds = best_seconds(200, [&] { inputs.run(cpu); });
  std::printf("attention of a row: %.2f ms, %.1f GFLOP/s\n", 1e3 * seconds,
              4e-9 * 640 * inputs.heads * inputs.head_dim / seconds);
}

/// Keys in pages of 64, a row's scores, the best 512 of them and the best 2048 blocks of 8.
void measure_index(const backend& cpu) {
  constexpr std::size_t heads = 32;
  constexpr std::size_t head_dim = 128;
  constexpr std::size_t keys = std::size_t{1} << 20;
  constexpr std::size_t page = 64;
  constexpr entry_format format = entry_format::fp4_e8m0_32;
  const matrix_buffer<std::byte> some = entries_of(cpu, format, 4096, head_dim);
  matrix_buffer<std::byte> all(keys, entry_bytes(format, head_dim));
  for (std::size_t i = 0; i < keys; ++i)
    std::copy_n(some.view().row_data(i % some.rows()), all.cols(), all.view().row_data(i));
  const matrix_buffer<std::byte> query = entries_of(cpu, format, heads, head_dim);
  const auto pages = pointers_to(all, page);
  matrix_buffer<bf16> weights = normal_rows(1, heads);
  for (bf16& weight : weights.span()) weight = to_bf16(0.02F * to_float(weight));
  std::vector<bf16> scores(keys);
  const double seconds = best_seconds(10, [&] {
    cpu.index_scores({scores, query.view(), weights.span(), pages, head_dim, page});
  });
  std::printf("index scores: %.1f ns a key, %.1f GFLOP/s\n", 1e9 * seconds / keys,
              2e-9 * keys * heads * head_dim / seconds);
  // Scores as they come repeat every 4096 keys: others, without a period.
  const matrix_buffer<bf16> random = normal_rows(1, keys);
  std::vector<std::uint32_t> best;
  const double top = best_seconds(10, [&] { select_top_k(random.span(), 512, best); });
  candidate_pool pool;
  const double blocks = best_seconds(10, [&] { select_candidates(random.span(), 8, 2048, pool); });
  std::printf("top 512 of them: %.2f ms, %.1f %% of the scores; 2048 blocks: %.2f ms, %.1f %%\n",
              1e3 * top, 100 * top / seconds, 1e3 * blocks, 100 * blocks / seconds);
}

}  // namespace

int main(int count, char** arguments) {
  const auto cpu = make_cpu_backend();
  // Afterwards: making a backend asks for the processor's instruction sets and chooses all anew.
  if (count > 1 && std::string_view(arguments[1]) == "avx2")
    hwy::GetChosenTarget().Update(HWY_AVX2);
  measure_attention(*cpu);
  measure_index(*cpu);
}
