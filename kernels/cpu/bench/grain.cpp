// Where dividing a call among threads stops to pay: wall times of one thread and of --threads N
// (2), in turns, for products of one row of FP8 with few outputs, divided whatever their size.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "kernels/cpu/cpu_backend.hpp"

namespace {

using namespace cedar::kernels;

constexpr std::size_t width = 5120;
constexpr std::size_t outputs_max = 2048;
constexpr int runs = 4001;

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

void compare(const backend& one, const backend& several) {
  matrix_buffer<bf16> x(1, width), y(1, outputs_max);
  matrix_buffer<std::uint8_t> codes(1, width), x_scales(1, width / 32);
  std::ranges::fill(x.span(), to_bf16(0.5F));
  one.quantize_fp8({x.view(), codes.view(), x_scales.view()});
  matrix_buffer<std::uint8_t> weights(outputs_max, width), scales(outputs_max / 32, width / 32);
  std::ranges::fill(weights.span(), std::uint8_t{0x39});
  std::ranges::fill(scales.span(), std::uint8_t{120});
  for (const std::size_t outputs : {64U, 128U, 256U, 512U, 1024U, 2048U}) {
    std::vector<double> alone, divided;
    for (int run = 0; run < runs; ++run)
      for (auto [cpu, times] : {std::pair{&one, &alone}, std::pair{&several, &divided}}) {
        const double start = wall_seconds();
        cpu->linear_fp8(
            {{y.data(), 1, outputs, outputs_max},
             {codes.view(), x_scales.view()},
             {{weights.data(), outputs, width}, {scales.data(), outputs / 32, width / 32}}});
        times->push_back(wall_seconds() - start);
      }
    const double before = median(alone), after = median(divided);
    std::printf("%8zu elements %9.1f us, %9.1f us: %5.2f\n", outputs * width, 1e6 * before,
                1e6 * after, before / after);
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::uint32_t threads = 2;
  if (count == 3 && std::string_view(arguments[1]) == "--threads")
    threads = static_cast<std::uint32_t>(std::clamp(std::atoi(arguments[2]), 2, 256));
  compare(*make_cpu_backend(), *make_cpu_backend(threads, 1));
}
