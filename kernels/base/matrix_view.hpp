// A non-owning two-dimensional view: `rows` rows of `cols` contiguous elements, `stride` elements
// from one row to the next. Every tensor argument of a kernel is one of these or a std::span.
//
// Lifetime: a view is valid while the buffer it was made from lives; views are passed by value and
// never stored beyond a call.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace cedar::kernels {

template <class T>
struct matrix_view {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t stride = 0;

  constexpr matrix_view() = default;

  constexpr matrix_view(T* first, std::size_t rows_count, std::size_t cols_count)
      : data(first), rows(rows_count), cols(cols_count), stride(cols_count) {}

  constexpr matrix_view(T* first, std::size_t rows_count, std::size_t cols_count,
                        std::size_t row_stride)
      : data(first), rows(rows_count), cols(cols_count), stride(row_stride) {}

  /// A mutable view converts to a read-only one.
  constexpr operator matrix_view<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {data, rows, cols, stride};
  }

  constexpr T* row_data(std::size_t index) const { return data + index * stride; }
  constexpr std::span<T> row(std::size_t index) const { return {row_data(index), cols}; }

  /// Rows [first, first + count).
  constexpr matrix_view rows_from(std::size_t first, std::size_t count) const {
    return {row_data(first), count, cols, stride};
  }

  /// Columns [first, first + count) of every row.
  constexpr matrix_view cols_from(std::size_t first, std::size_t count) const {
    return {data + first, rows, count, stride};
  }

  /// True if the rows follow each other without gaps.
  constexpr bool contiguous() const { return stride == cols || rows <= 1; }
};

}  // namespace cedar::kernels
