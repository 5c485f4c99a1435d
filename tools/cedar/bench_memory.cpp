#include "tools/cedar/bench_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "kernels/base/check.hpp"

namespace cedar::tools {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t pattern_bytes = std::size_t{1} << 20;

/// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t number) {
  std::uint64_t mixed = number * 0x9e3779b97f4a7c15U;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31);
}

/// Either sign, a size of 2^-7 to 1.
float number_of(std::uint64_t index, float largest) {
  const std::uint64_t bits = mix(index + 1);
  const float size = static_cast<float>(1 + (bits & 0x7f)) / 128.0F * largest;
  return (bits & 0x80) != 0 ? -size : size;
}

}  // namespace

stream_memory::stream_memory(std::size_t bytes, stream_contents contents)
    : bytes_((bytes + huge_page - 1) / huge_page * huge_page) {
  void* const mapped =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  memory_ = {static_cast<std::byte*>(mapped), unmap{bytes_}};
  ::madvise(mapped, bytes_, MADV_HUGEPAGE);  // a wish: without it reading is a little slower
  std::vector<std::uint64_t> pattern(std::min(pattern_bytes, bytes_) / 8);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::uint64_t bits = mix(i + 1);
    pattern[i] = contents == stream_contents::scales
                     ? 0x7676767676767676U + (bits & 0x0303030303030303U)
                     : (bits & 0x8f8f8f8f8f8f8f8fU) | 0x3030303030303030U;
  }
  for (std::size_t at = 0; at < bytes_; at += pattern.size() * 8)
    std::memcpy(memory_.get() + at, pattern.data(), std::min(pattern.size() * 8, bytes_ - at));
}

void stream_memory::unmap::operator()(std::byte* memory) const noexcept {
  ::munmap(memory, bytes);
}

const std::byte* stream_memory::next(std::size_t bytes) {
  CEDAR_REQUIRE(bytes <= bytes_, std::to_string(bytes) + " bytes of " + std::to_string(bytes_));
  if (bytes > bytes_ - at_) at_ = 0;
  const std::byte* const out = memory_.get() + at_;
  at_ = std::min(bytes_, (at_ + bytes + page - 1) / page * page);
  return out;
}

kernels::fp8_weight_view bench_memory::next_fp8(std::size_t o, std::size_t k) {
  const std::size_t blocks = (o + 31) / 32;
  const auto* codes = reinterpret_cast<const std::uint8_t*>(stream_.next(o * k));
  const auto* scales = reinterpret_cast<const std::uint8_t*>(scales_.next(blocks * (k / 32)));
  return {{codes, o, k}, {scales, blocks, k / 32}};
}

kernels::fp4_weight_view bench_memory::next_fp4(std::size_t o, std::size_t k) {
  const auto* codes = reinterpret_cast<const std::uint8_t*>(stream_.next(o * k / 2));
  const auto* scales = reinterpret_cast<const std::uint8_t*>(scales_.next(o * (k / 32)));
  return {{codes, o, k / 2}, {scales, o, k / 32}};
}

kernels::matrix_view<kernels::bf16> bench_memory::numbers(std::size_t rows, std::size_t cols) {
  const auto out = arena_.take<kernels::bf16>(rows, cols);
  for (std::size_t i = 0; i < rows * cols; ++i) out.data[i] = kernels::to_bf16(number_of(i, 1));
  return out;
}

kernels::matrix_view<float> bench_memory::floats(std::size_t rows, std::size_t cols,
                                                 float largest) {
  const auto out = arena_.take<float>(rows, cols);
  for (std::size_t i = 0; i < rows * cols; ++i) out.data[i] = number_of(i, largest);
  return out;
}

}  // namespace cedar::tools
