// Memory that a bench reads: so much of it that nothing is still in a cache when it comes round
// again, with values that are ordinary numbers in every format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/base/arena.hpp"
#include "kernels/base/dtype.hpp"
#include "kernels/base/matrix_view.hpp"
#include "kernels/ops/arguments.hpp"

namespace cedar::tools {

/// Sizes that a machine with 105 MB of L3 cache, shared with others, does not keep.
inline constexpr std::size_t default_stream_bytes = std::size_t{1} << 30;

/// What the bytes of a memory are.
enum class stream_contents : std::uint8_t {
  /// Every byte is an E4M3 code of 0.5 to 1.9 and either sign; two of them are a bf16, four a
  /// binary32, of exponents -31 to 0; half of one is any E2M1 code.
  codes,
  scales,  ///< E8M0: 2^-9 to 2^-6
};

/// Bytes that are read once around, by whoever reads next. On huge pages where the system gives
/// them.
class stream_memory {
 public:
  stream_memory(std::size_t bytes, stream_contents contents);

  std::size_t bytes() const noexcept { return bytes_; }
  /// The next `bytes`, on a page of their own; begins again where not so many are left. Requires
  /// that there are so many.
  const std::byte* next(std::size_t bytes);

 private:
  struct unmap {
    std::size_t bytes;
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, unmap> memory_;
  std::size_t bytes_;
  std::size_t at_ = 0;
};

/// Several copies of one tensor, used in turn.
template <class T>
class turns {
 public:
  explicit turns(std::vector<kernels::matrix_view<T>> copies) : copies_(std::move(copies)) {}
  kernels::matrix_view<T> next() {
    at_ = (at_ + 1) % copies_.size();
    return copies_[at_];
  }

 private:
  std::vector<kernels::matrix_view<T>> copies_;
  std::size_t at_ = 0;
};

/// What the rows of a bench are computed from and into; each row's memory ends before the next
/// row's is taken.
class bench_memory {
 public:
  explicit bench_memory(std::size_t stream_bytes)
      : stream_(stream_bytes, stream_contents::codes),
        scales_(stream_bytes / 8, stream_contents::scales) {}

  stream_memory& stream() noexcept { return stream_; }
  /// Weights as they come from memory: codes and scales of [o, k].
  kernels::fp8_weight_view next_fp8(std::size_t o, std::size_t k);
  kernels::fp4_weight_view next_fp4(std::size_t o, std::size_t k);
  template <class T>
  kernels::matrix_view<const T> next_plain(std::size_t o, std::size_t k) {
    return {reinterpret_cast<const T*>(stream_.next(o * k * sizeof(T))), o, k};
  }

  void reset() { arena_.reset(); }

  /// Zeros.
  template <class T>
  kernels::matrix_view<T> zeros(std::size_t rows, std::size_t cols) {
    return filled(rows, cols, T{});
  }
  template <class T>
  kernels::matrix_view<T> filled(std::size_t rows, std::size_t cols, T value) {
    const auto out = arena_.take<T>(rows, cols);
    std::uninitialized_fill_n(out.data, rows * cols, value);
    return out;
  }
  /// Numbers between -1 and 1, of a size not below 2^-7.
  kernels::matrix_view<kernels::bf16> numbers(std::size_t rows, std::size_t cols);
  kernels::matrix_view<float> floats(std::size_t rows, std::size_t cols, float largest);
  /// `make`(rows, cols) so often that a tensor has left the caches when its turn comes again, if
  /// it has 8 MiB; else once: it stays in a cache when a model computes, too.
  template <class T, class Make>
  turns<T> taking_turns(std::size_t rows, std::size_t cols, const Make& make) {
    const std::size_t bytes = rows * cols * sizeof(T);
    std::vector<kernels::matrix_view<T>> copies;
    do copies.push_back(make(rows, cols));
    while (bytes >= turning_bytes && copies.size() * bytes < stream_.bytes() / 8);
    return turns<T>(std::move(copies));
  }
  static constexpr std::size_t turning_bytes = std::size_t{8} << 20;

 private:
  stream_memory stream_;
  stream_memory scales_;
  kernels::arena arena_;
};

}  // namespace cedar::tools
