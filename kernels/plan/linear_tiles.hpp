// How a linear layer is cut on a device: the order of its sums, and which kernel computes which
// tile.
//
// The order of a sum depends on the input width alone: slices of slice_columns, each one chain of
// matrix operations, added in ascending order (per segment, then segment after segment). Every
// kernel keeps it, so the choice among kernels and the other rows of a call change no bit of a row.
#pragma once

#include <cstddef>

namespace cedar::kernels::plan {

/// Columns whose products are added in one chain: the released width 5120 gives eight warps one
/// each.
inline constexpr unsigned slice_columns = 640;
/// Columns that are brought to shared memory at a time: two blocks of scales.
inline constexpr unsigned chunk_columns = 64;

/// Few rows: a block is 16 outputs by 8 rows, its warps take slices of the sum in turn. Weights are
/// read once, and by as many warps as there are.
inline constexpr unsigned few_rows = 8;
inline constexpr unsigned few_outputs = 16;
inline constexpr unsigned few_warps = 8;
/// Many rows: a block is 64 outputs by 64 rows, a warp of it 16 outputs by all the rows.
inline constexpr unsigned many_rows = 64;
inline constexpr unsigned many_outputs = 64;
inline constexpr unsigned many_warps = many_outputs / few_outputs;

struct linear_grid {
  bool few = false;  ///< which kernel
  unsigned output_blocks = 0;  ///< grid x
  unsigned row_blocks = 0;  ///< grid y
};

/// `rows` and `outputs` at least 1. More than few_rows rows would read every weight twice.
constexpr linear_grid choose_linear(std::size_t rows, std::size_t outputs) {
  const auto blocks = [](std::size_t count, unsigned size) {
    return static_cast<unsigned>((count + size - 1) / size);
  };
  if (rows <= few_rows) return {true, blocks(outputs, few_outputs), 1};
  return {false, blocks(outputs, many_outputs), blocks(rows, many_rows)};
}

}  // namespace cedar::kernels::plan
