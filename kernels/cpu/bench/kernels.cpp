// Measures the cpu backend at released sizes, on one thread or --threads N: linear layers of 5120 x
// 5120 for one row (GB/s of weight bytes, weights streaming from memory) and for many rows
// (GFLOP/s), attention of a row with 64 heads of 512 over 128 + 512 entries, index scores of 32
// heads of 128 over 16384 keys. Before each linear layer the ceilings: the bandwidth that plain
// reading reaches, with whatever number of streams is best, and the peak of fused multiply-adds in
// the registers of the instruction set in use. Times are CPU time of the thread, best of several
// runs. An argument "avx2" keeps to AVX2 where there is AVX-512.
//
// With several threads instead: wall times of one thread and of N, and their ratio, for runs that
// take turns, at released sizes: the best of all runs | the medians. Then the same for products of
// few outputs that are divided whatever their size: where that stops to pay.
#include <hwy/targets.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "kernels/cpu/bench/ceilings.hpp"
#include "kernels/cpu/cpu_backend.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::kernels::bench;

constexpr std::size_t width = 5120;
constexpr std::size_t rows_measured[] = {1, 2, 6, 24, 64, 512};
constexpr std::size_t rows_max = 512;
constexpr std::size_t pool_bytes = std::size_t{256} << 20;  // several times the L3 cache

/// Random bytes: `fixed`, and those bits of `free` that chance sets.
buffer make_pool(std::size_t bytes, std::uint8_t fixed, std::uint8_t free) {
  buffer pool(bytes);
  std::uint32_t seed = 1;
  for (std::byte& byte : pool.span()) {
    seed = seed * 1664525U + 1013904223U;
    byte = static_cast<std::byte>((seed >> 24 & free) | fixed);
  }
  return pool;
}

/// Weights: in FP8 1 to 1.375 and in bf16 2^-15 to 2^-8, of both signs. Small numbers would make
/// products subnormal, which some processors take a hundred times as long for.
buffer make_weights() {
  return make_pool(pool_bytes, 0x38, 0x83);
}

/// Entries: codes of 2 to 6 (FP4) and 192 to 352 (FP8), E8M0 scales of 2^-11 to 2^-8.
buffer make_entries() {
  return make_pool(std::size_t{2} << 20, 0x74, 0x03);
}

/// Runs one linear layer over matrices that follow each other in the pool.
template <class Call>
void measure_linear(const char* name, const buffer& pool, bool avx512, double bytes_per_weight,
                    const Call& call) {
  const double read = read_bandwidth(pool);
  const double most = peak(avx512);
  const auto matrix_bytes = static_cast<std::size_t>(bytes_per_weight * width * width);
  const std::size_t matrices = pool.bytes() / matrix_bytes;
  std::printf("%-16s of %4.1f GB/s, %3.0f GFLOP/s:", name, read, most);
  for (const std::size_t rows : rows_measured) {
    std::size_t at = 0;
    const double seconds = best_seconds(rows == 1   ? 40
                                        : rows < 24 ? 12
                                                    : 4,
                                        [&] {
                                          call(rows, pool.data() + at * matrix_bytes);
                                          at = (at + 1) % matrices;
                                        });
    const double gigabytes = 1e-9 * bytes_per_weight * width * width / seconds;
    const double gigaflops = 2e-9 * static_cast<double>(rows * width * width) / seconds;
    if (rows == 1)
      std::printf(" %4.1f GB/s, %3.0f %% |", gigabytes, 100 * gigabytes / read);
    else
      std::printf(" %3zu rows %5.1f, %3.0f %%", rows, gigaflops, 100 * gigaflops / most);
  }
  std::puts("");
}

void measure_linears(const backend& cpu, const buffer& pool, bool avx512) {
  matrix_buffer<bf16> x(rows_max, width);
  matrix_buffer<bf16> y(rows_max, width);
  matrix_buffer<float> wide(rows_max, width);
  matrix_buffer<std::uint8_t> codes(rows_max, width);
  matrix_buffer<std::uint8_t> x_scales(rows_max, width / 32);
  for (bf16& value : x.span()) value = to_bf16(0.5F);
  cpu.quantize_fp8({x.view(), codes.view(), x_scales.view()});
  matrix_buffer<std::uint8_t> scales(width, width / 32);
  std::fill(scales.span().begin(), scales.span().end(), std::uint8_t{120});
  const auto quantised = [&](std::size_t rows) {
    return fp8_rows_view{codes.rows(rows), x_scales.rows(rows)};
  };
  measure_linear("fp8", pool, avx512, 1.0 + 1.0 / 1024, [&](std::size_t rows, const std::byte* w) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(w);
    cpu.linear_fp8({y.rows(rows),
                    quantised(rows),
                    {{bytes, width, width}, {scales.data(), width / 32, width / 32}}});
  });
  measure_linear("fp4", pool, avx512, 0.5 + 1.0 / 32, [&](std::size_t rows, const std::byte* w) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(w);
    cpu.linear_fp4({y.rows(rows), quantised(rows), {{bytes, width, width / 2}, scales.view()}});
  });
  measure_linear("fp8 weight only", pool, avx512, 1.0 + 1.0 / 1024,
                 [&](std::size_t rows, const std::byte* w) {
                   const auto* bytes = reinterpret_cast<const std::uint8_t*>(w);
                   cpu.linear_fp8_weight_only(
                       {y.rows(rows),
                        x.rows(rows),
                        {{bytes, width, width}, {scales.data(), width / 32, width / 32}}});
                 });
  measure_linear("bf16", pool, avx512, 2, [&](std::size_t rows, const std::byte* w) {
    cpu.linear_bf16({y.rows(rows), x.rows(rows), {reinterpret_cast<const bf16*>(w), width, width}});
  });
  measure_linear("bf16 to f32", pool, avx512, 2, [&](std::size_t rows, const std::byte* w) {
    cpu.linear_f32(
        {wide.rows(rows), x.rows(rows), {reinterpret_cast<const bf16*>(w), width, width}});
  });
}

std::vector<const std::byte*> entries_of(const buffer& pool, std::size_t count, std::size_t bytes) {
  std::vector<const std::byte*> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(pool.data() + i * bytes);
  return out;
}

void measure_attention(const backend& cpu, const buffer& pool) {
  constexpr std::size_t heads = 64;
  constexpr std::size_t head_dim = 512;
  const auto window = entries_of(pool, 128, entry_bytes(entry_format::fp8_e8m0_32, head_dim));
  const auto selected = entries_of(pool, 512, entry_bytes(entry_format::fp4_e4m3_16, head_dim));
  const attention_entries entries{window, selected};
  matrix_buffer<bf16> q(1, heads * head_dim);
  matrix_buffer<bf16> o(1, heads * head_dim);
  const std::vector<float> sinks(heads, 0.0F);
  const double seconds = best_seconds(40, [&] {
    cpu.attention({o.view(),
                   q.view(),
                   {&entries, 1},
                   sinks,
                   head_dim,
                   0.044F,
                   entry_format::fp8_e8m0_32,
                   entry_format::fp4_e4m3_16});
  });
  std::printf("attention of a row: %.2f ms, %.1f GFLOP/s\n", 1e3 * seconds,
              4e-9 * 640 * heads * head_dim / seconds);
}

void measure_index_scores(const backend& cpu, const buffer& pool) {
  constexpr std::size_t heads = 32;
  constexpr std::size_t head_dim = 128;
  constexpr std::size_t keys = 16384;
  constexpr std::size_t bytes = entry_bytes(entry_format::fp4_e8m0_32, head_dim);
  const auto all = entries_of(pool, keys, bytes);
  const matrix_view<const std::byte> query(pool.data(), heads, bytes);
  std::vector<bf16> scores(keys);
  const std::vector<bf16> weights(heads, to_bf16(0.01F));
  const double seconds = best_seconds(20, [&] {
    cpu.index_scores({scores, query, weights, all, head_dim});
  });
  std::printf("index scores: %.0f ns a key, %.1f GFLOP/s\n", 1e9 * seconds / keys,
              2e-9 * keys * heads * head_dim / seconds);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Best and median of one thread's times and of several threads'.
void print_comparison(const char* name, std::vector<double> alone, std::vector<double> divided) {
  std::sort(alone.begin(), alone.end());
  std::sort(divided.begin(), divided.end());
  std::printf("%-28s", name);
  for (const std::size_t at : {std::size_t{0}, alone.size() / 2})
    std::printf(" %9.1f us, %9.1f us: %5.2f |", 1e6 * alone[at], 1e6 * divided[at],
                alone[at] / divided[at]);
  std::puts("");
}

/// `runs` pairs, each a run of one thread and one of several.
template <class Call>
void compare(const char* name, int runs, const backend& one, const backend& several,
             const Call& call) {
  std::vector<double> alone;
  std::vector<double> divided;
  for (int run = 0; run < runs; ++run)
    for (auto [cpu, times] : {std::pair{&one, &alone}, std::pair{&several, &divided}}) {
      const double start = wall_seconds();
      call(*cpu);
      times->push_back(wall_seconds() - start);
    }
  print_comparison(name, std::move(alone), std::move(divided));
}

void compare_threads(std::uint32_t threads, const buffer& pool, const buffer& packed) {
  const auto one = make_cpu_backend();
  const auto several = make_cpu_backend(threads);
  const auto eager = make_cpu_backend(threads, 1);
  matrix_buffer<bf16> x(96, width);
  matrix_buffer<bf16> y(96, width);
  matrix_buffer<std::uint8_t> codes(96, width);
  matrix_buffer<std::uint8_t> x_scales(96, width / 32);
  for (bf16& value : x.span()) value = to_bf16(0.5F);
  one->quantize_fp8({x.view(), codes.view(), x_scales.view()});
  matrix_buffer<std::uint8_t> scales(width, width / 32);
  std::fill(scales.span().begin(), scales.span().end(), std::uint8_t{120});
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(pool.data());
  const auto fp8 = [&](const backend& cpu, std::size_t rows, std::size_t outputs) {
    cpu.linear_fp8({{y.data(), rows, outputs, width},
                    {codes.rows(rows), x_scales.rows(rows)},
                    {{bytes, outputs, width}, {scales.data(), (outputs + 31) / 32, width / 32}}});
  };
  compare("fp8 5120 x 5120, 1 row", 201, *one, *several,
          [&](const backend& cpu) { fp8(cpu, 1, width); });
  compare("fp8 5120 x 5120, 24 rows", 41, *one, *several,
          [&](const backend& cpu) { fp8(cpu, 24, width); });
  compare("fp4 5120 x 5120, 1 row", 201, *one, *several, [&](const backend& cpu) {
    cpu.linear_fp4(
        {y.rows(1), {codes.rows(1), x_scales.rows(1)}, {{bytes, width, width / 2}, scales.view()}});
  });
  compare("bf16 5120 x 5120, 1 row", 201, *one, *several, [&](const backend& cpu) {
    cpu.linear_bf16(
        {y.rows(1), x.rows(1), {reinterpret_cast<const bf16*>(pool.data()), width, width}});
  });
  constexpr std::size_t heads = 64;
  constexpr std::size_t head_dim = 512;
  const auto window = entries_of(packed, 128, entry_bytes(entry_format::fp8_e8m0_32, head_dim));
  const auto selected = entries_of(packed, 512, entry_bytes(entry_format::fp4_e4m3_16, head_dim));
  const std::vector<attention_entries> lists(4, attention_entries{window, selected});
  matrix_buffer<bf16> q(4, heads * head_dim);
  matrix_buffer<bf16> o(4, heads * head_dim);
  const std::vector<float> sinks(heads, 0.0F);
  for (const std::size_t rows : {1U, 4U})
    compare(rows == 1 ? "attention, 1 row" : "attention, 4 rows", 201, *one, *several,
            [&](const backend& cpu) {
              cpu.attention({o.rows(rows),
                             q.rows(rows),
                             {lists.data(), rows},
                             sinks,
                             head_dim,
                             0.044F,
                             entry_format::fp8_e8m0_32,
                             entry_format::fp4_e4m3_16});
            });
  std::puts("divided whatever the size, 1 row of fp8:");
  for (const std::size_t outputs : {8U, 16U, 32U, 64U, 128U, 256U, 512U}) {
    const std::string name = std::to_string(outputs * width) + " elements";
    compare(name.c_str(), 4001, *one, *eager, [&](const backend& cpu) { fp8(cpu, 1, outputs); });
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::uint32_t threads = 1;
  bool avx512 = (hwy::SupportedTargets() & HWY_AVX3) != 0;
  for (int i = 1; i < count; ++i) {
    const std::string_view word(arguments[i]);
    if (word == "avx2")
      avx512 = false;
    else if (word == "--threads" && i + 1 < count)
      threads = static_cast<std::uint32_t>(std::clamp(std::atoi(arguments[++i]), 1, 256));
  }
  // DisableTargets would come to nothing: whoever asks for the supported targets chooses all anew.
  if (!avx512) hwy::SetSupportedTargetsForTest(HWY_AVX2);
  const buffer pool = make_weights();
  const buffer packed = make_entries();
  if (threads > 1) {
    compare_threads(threads, pool, packed);
    return 0;
  }
  const auto cpu = make_cpu_backend();
  measure_linears(*cpu, pool, avx512);
  measure_attention(*cpu, packed);
  measure_index_scores(*cpu, packed);
}
