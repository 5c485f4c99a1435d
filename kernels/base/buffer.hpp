// Owning, aligned, fixed-size memory for tensors. Move-only; contents are zero after construction.
//
// Alignment is 64 bytes (a cache line, and the widest vector register the CPU backend may use).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "kernels/base/matrix_view.hpp"

namespace cedar::kernels {

inline constexpr std::size_t buffer_alignment = 64;

class buffer {
 public:
  buffer() = default;
  explicit buffer(std::size_t bytes);

  /// Contents are undefined: for whoever writes all of it at once.
  static buffer uninitialized(std::size_t bytes);

  /// Forgets the bytes from `bytes` on; the memory stays. Defect: more than there are.
  void truncate(std::size_t bytes);

  std::byte* data() noexcept { return memory_.get(); }
  const std::byte* data() const noexcept { return memory_.get(); }
  std::size_t bytes() const noexcept { return bytes_; }
  std::span<std::byte> span() noexcept { return {memory_.get(), bytes_}; }
  std::span<const std::byte> span() const noexcept { return {memory_.get(), bytes_}; }

 private:
  struct release {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, release> memory_;
  std::size_t bytes_ = 0;
};

/// A buffer of rows x cols elements of T, with its shape. T must be trivially copyable.
template <class T>
class matrix_buffer {
 public:
  matrix_buffer() = default;
  matrix_buffer(std::size_t rows, std::size_t cols)
      : memory_(rows * cols * sizeof(T)), rows_(rows), cols_(cols) {}

  T* data() noexcept { return reinterpret_cast<T*>(memory_.data()); }
  const T* data() const noexcept { return reinterpret_cast<const T*>(memory_.data()); }
  std::size_t rows() const noexcept { return rows_; }
  std::size_t cols() const noexcept { return cols_; }
  matrix_view<T> view() noexcept { return {data(), rows_, cols_}; }
  matrix_view<const T> view() const noexcept { return {data(), rows_, cols_}; }
  /// The first `count` rows.
  matrix_view<T> rows(std::size_t count) noexcept { return {data(), count, cols_}; }
  std::span<T> span() noexcept { return {data(), rows_ * cols_}; }
  std::span<const T> span() const noexcept { return {data(), rows_ * cols_}; }

 private:
  buffer memory_;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
};

}  // namespace cedar::kernels
