// The last `capacity` rows of something that is numbered by position: window KV of a layer, the k
// and g of tokens that wait for their group.
//
// Row of position p lies in slot p mod capacity. 1. Rows are written in ascending position. 2. A
// row stays readable until capacity later rows were written; writing w rows and then truncating
// back to position p keeps rows [p - (capacity - w), p) readable, which is why rings carry slack
// for a draft block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/base/buffer.hpp"
#include "kernels/base/matrix_view.hpp"

namespace cedar::memory {

class position_ring {
 public:
  position_ring(std::uint32_t capacity_rows, std::size_t row_bytes)
      : memory_(capacity_rows * row_bytes), capacity_(capacity_rows), row_bytes_(row_bytes) {}

  std::uint32_t capacity() const noexcept { return capacity_; }
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  std::size_t bytes() const noexcept { return memory_.bytes(); }

  const std::byte* row(std::uint32_t position) const noexcept {
    return memory_.data() + (position % capacity_) * row_bytes_;
  }

  /// Rows of positions first, first + 1, ...; only the last `capacity` of them are kept.
  void write(std::uint32_t first, kernels::matrix_view<const std::byte> rows) noexcept {
    const std::size_t skipped = rows.rows > capacity_ ? rows.rows - capacity_ : 0;
    for (std::size_t i = skipped; i < rows.rows; ++i)
      std::memcpy(memory_.data() + ((first + i) % capacity_) * row_bytes_, rows.row_data(i),
                  row_bytes_);
  }

 private:
  kernels::buffer memory_;
  std::uint32_t capacity_;
  std::size_t row_bytes_;
};

}  // namespace cedar::memory
