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
  unsigned products = 1;  ///< grid z
};

/// Layers that one launch computes side by side. The grid covers the largest of them in rows and in
/// outputs; blocks that a smaller one does not have leave at once.
class linear_group {
 public:
  constexpr void add(std::size_t rows, std::size_t outputs) {
    const auto larger = [](std::size_t a, std::size_t b) { return a > b ? a : b; };
    rows_ = larger(rows_, rows);
    outputs_ = larger(outputs_, outputs);
    few_reads_ += outputs * blocks(rows, few_rows);
    many_reads_ += outputs * blocks(rows, many_rows);
    ++products_;
  }

  /// The kernel for few rows if it reads at most a quarter more weights than that for many: what
  /// the latter computes for rows that are not there costs more. So a layer of more than few_rows
  /// rows by itself gets the kernel for many, and experts of which a few have some rows more do
  /// not.
  constexpr linear_grid grid() const {
    const bool few = 4 * few_reads_ <= 5 * many_reads_;
    return {few, blocks(outputs_, few ? few_outputs : many_outputs),
            blocks(rows_, few ? few_rows : many_rows), products_};
  }

 private:
  static constexpr unsigned blocks(std::size_t count, unsigned size) {
    return static_cast<unsigned>((count + size - 1) / size);
  }

  std::size_t rows_ = 0;  ///< most of a product
  std::size_t outputs_ = 0;  ///< most of a product
  std::size_t few_reads_ = 0;  ///< of rows of weights, by the kernel for few rows
  std::size_t many_reads_ = 0;
  unsigned products_ = 0;
};

/// A layer by itself. `rows` and `outputs` at least 1.
constexpr linear_grid choose_linear(std::size_t rows, std::size_t outputs) {
  linear_group alone;
  alone.add(rows, outputs);
  return alone.grid();
}

}  // namespace cedar::kernels::plan
