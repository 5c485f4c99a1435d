// Views of global memory in kernels. Emulated, an index beyond a view is a fault; on a device it is
// not looked at.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/dtype.hpp"
#include "kernels/base/matrix_view.hpp"
#include "kernels/cuda/device/platform.cuh"

namespace cedar::kernels::cuda {

/// Rows of elements, like matrix_view.
template <class T>
struct global_rows {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t stride = 0;

  /// Where elements [col, col + count) of the row lie; count >= 1.
  CEDAR_DEVICE T* at(std::size_t row, std::size_t col, std::size_t count = 1) const {
    require_within(row, rows, "row");
    require_within(col + count - 1, cols, "column");
    return data + row * stride + col;
  }
  CEDAR_DEVICE T load(std::size_t row, std::size_t col) const { return *at(row, col); }
  CEDAR_DEVICE void store(std::size_t row, std::size_t col, T value) const {
    *at(row, col) = value;
  }
};

/// An array of `size` elements.
template <class T>
struct global_array {
  T* data = nullptr;
  std::size_t size = 0;

  CEDAR_DEVICE T load(std::size_t index) const { return at(index); }
  CEDAR_DEVICE T& at(std::size_t index) const {
    require_within(index, size, "element");
    return data[index];
  }
};

template <class T>
CEDAR_ANYWHERE global_rows<T> rows_of(const matrix_view<T>& view) {
  return {view.data, view.rows, view.cols, view.stride};
}

/// The same memory as bytes.
template <class T>
CEDAR_ANYWHERE global_rows<const std::uint8_t> bytes_of(const matrix_view<const T>& view) {
  return {reinterpret_cast<const std::uint8_t*>(view.data), view.rows, view.cols * sizeof(T),
          view.stride * sizeof(T)};
}

/// Sixteen bytes that are moved at once, whatever they are.
struct [[gnu::may_alias]] alignas(16) sixteen_bytes {
  std::uint32_t words[4];
};

CEDAR_DEVICE bool is_aligned(const void* address, std::size_t to) {
  return reinterpret_cast<std::uintptr_t>(address) % to == 0;
}

}  // namespace cedar::kernels::cuda
