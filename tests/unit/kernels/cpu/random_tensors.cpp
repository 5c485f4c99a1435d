#include "tests/unit/kernels/cpu/random_tensors.hpp"

#include <hwy/targets.h>
#include <tbb/global_control.h>

#include <boost/test/unit_test.hpp>

#include "kernels/cpu/cpu_backend.hpp"

namespace cedar::kernels {

namespace {

template <class T, class Make>
tensor<T> filled(std::size_t rows, std::size_t cols, const Make& make) {
  tensor<T> out(rows, cols);
  for (T& element : out.memory()) element = make();
  return out;
}

}  // namespace

tensor<bf16> random_tensors::bf16_matrix(std::size_t rows, std::size_t cols, float scale) {
  return filled<bf16>(rows, cols, [&] { return to_bf16(normal(scale)); });
}

tensor<float> random_tensors::f32_matrix(std::size_t rows, std::size_t cols, float scale) {
  return filled<float>(rows, cols, [&] { return normal(scale); });
}

tensor<std::uint8_t> random_tensors::e4m3_codes(std::size_t rows, std::size_t cols) {
  return filled<std::uint8_t>(rows, cols, [&] {
    const auto code = static_cast<std::uint8_t>(below(256));
    return static_cast<std::uint8_t>((code & 0x7fU) == 0x7fU ? code - 1U : code);
  });
}

tensor<std::uint8_t> random_tensors::bytes(std::size_t rows, std::size_t cols, std::size_t first,
                                           std::size_t last) {
  return filled<std::uint8_t>(
      rows, cols, [&] { return static_cast<std::uint8_t>(first + below(last - first + 1)); });
}

std::vector<float> random_tensors::f32_vector(std::size_t size, float scale) {
  std::vector<float> out(size);
  for (float& value : out) value = normal(scale);
  return out;
}

std::vector<bf16> random_tensors::bf16_vector(std::size_t size, float scale) {
  std::vector<bf16> out(size);
  for (bf16& value : out) value = to_bf16(normal(scale));
  return out;
}

void on_every_target(const std::function<void(const backend&)>& check) {
  // Without it, a backend would have no more threads than the machine has processors.
  const tbb::global_control enough(tbb::global_control::max_allowed_parallelism, 8);
  const std::int64_t supported = hwy::SupportedTargets();
  for (const std::uint32_t threads : {1U, 2U, 3U, 7U}) {
    const auto backend = make_cpu_backend(threads, 1);
    for (const std::int64_t target : {HWY_AVX2, HWY_AVX3, HWY_AVX3_DL}) {
      if ((supported & target) == 0) continue;
      BOOST_TEST_CONTEXT("instruction set " << hwy::TargetName(target) << ", threads " << threads) {
        hwy::GetChosenTarget().Update(target);
        check(*backend);
      }
    }
  }
  hwy::GetChosenTarget().Update(supported);
}

}  // namespace cedar::kernels
