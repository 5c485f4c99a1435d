// The projection of streams onto few outputs: rows of bf16 as long as all streams (20,480), 24 rows
// of binary32 weights, which are as much memory as 50 rows of streams. In the canonical order.
//
// 1. Weights are read once for all rows of a call: columns are walked in chunks, and every lane of
//    every output of every row waits in memory meanwhile.
// 2. Rows are widened in registers: what has been written a moment ago is read where it lies.
#if defined(CEDAR_KERNELS_CPU_PROJECTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_PROJECTION_INL
#undef CEDAR_KERNELS_CPU_PROJECTION_INL
#else
#define CEDAR_KERNELS_CPU_PROJECTION_INL
#endif

#include <algorithm>

#include "kernels/base/matrix_view.hpp"
#include "kernels/cpu/internal/lanes-inl.hpp"
#include "kernels/cpu/internal/scratch.hpp"
#include "kernels/cpu/internal/workers.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// Register tile: outputs by rows.
inline constexpr std::size_t projected_outputs = width == 16 ? 8 : 4;
inline constexpr std::size_t projected_rows = 3;
/// Columns of a chunk: those of all 24 outputs are 48 KiB, of a register tile's rows 3.
inline constexpr std::size_t projected_columns = 512;

/// Columns [begin, end) of some rows with some outputs; the lanes of output a and row b begin at
/// lanes + (a * lanes_stride + b) * 16.
struct projection_tile {
  const float* weights;
  std::size_t weights_stride;
  const bf16* x;
  std::size_t x_stride;
  std::size_t begin;
  std::size_t end;
  float* lanes;
  std::size_t lanes_stride;

  HWY_INLINE float* lanes_of(std::size_t output, std::size_t row) const {
    return lanes + (output * lanes_stride + row) * canonical::lanes_count;
  }
};

/// Adds the products of one vector of every row, of which the first `count` elements exist.
template <std::size_t Outputs, std::size_t Rows>
HWY_INLINE void project_vector(const projection_tile& t, std::size_t k, std::size_t count,
                               f32_vector (&sums)[Outputs][Rows]) {
  f32_vector xs[Rows];
  HWY_UNROLL(3)
  for (std::size_t b = 0; b < Rows; ++b) xs[b] = load_first(t.x + b * t.x_stride + k, count);
  HWY_UNROLL(8)
  for (std::size_t a = 0; a < Outputs; ++a) {
    const f32_vector weight = load_first(t.weights + a * t.weights_stride + k, count);
    HWY_UNROLL(3)
    for (std::size_t b = 0; b < Rows; ++b) sums[a][b] = hn::MulAdd(xs[b], weight, sums[a][b]);
  }
}

template <std::size_t Outputs, std::size_t Rows>
HWY_NOINLINE void project_tile(const projection_tile& t) {
  for (std::size_t part = 0; part < parts; ++part) {
    f32_vector sums[Outputs][Rows];
    for (std::size_t a = 0; a < Outputs; ++a)
      for (std::size_t b = 0; b < Rows; ++b) sums[a][b] = load(t.lanes_of(a, b) + part * width);
    std::size_t k = t.begin + part * width;
    for (; k + width <= t.end; k += canonical::lanes_count)
      project_vector<Outputs, Rows>(t, k, width, sums);
    if (k < t.end) project_vector<Outputs, Rows>(t, k, t.end - k, sums);
    for (std::size_t a = 0; a < Outputs; ++a)
      for (std::size_t b = 0; b < Rows; ++b) store(sums[a][b], t.lanes_of(a, b) + part * width);
  }
}

/// All rows with the tile's outputs.
template <std::size_t Outputs>
HWY_INLINE void project_rows(projection_tile t, std::size_t rows) {
  std::size_t row = 0;
  const auto next = [&](std::size_t count) HWY_ATTR {
    row += count;
    t.x += count * t.x_stride;
    t.lanes += count * canonical::lanes_count;
  };
  for (; row + projected_rows <= rows; next(projected_rows))
    project_tile<Outputs, projected_rows>(t);
  if (row + 2 <= rows) {
    project_tile<Outputs, 2>(t);
    next(2);
  }
  if (row < rows) project_tile<Outputs, 1>(t);
}

/// out [rows, weights.rows]: outputs [first, last) of x * weights^T.
HWY_INLINE void project_outputs(const matrix_view<const bf16>& x,
                                const matrix_view<const float>& weights, std::size_t first,
                                std::size_t last, const matrix_view<float>& out) {
  scratch memory;
  float* lanes = memory.take<float>((last - first) * x.rows * canonical::lanes_count);
  std::memset(lanes, 0, (last - first) * x.rows * canonical::lanes_count * sizeof(float));
  // One row has nothing to share a chunk with, and long runs are what memory is fastest at.
  const std::size_t chunk = x.rows == 1 ? x.cols : projected_columns;
  for (std::size_t begin = 0; begin < x.cols; begin += chunk) {
    projection_tile tile{nullptr,  weights.stride, x.data,
                         x.stride, begin,          std::min(begin + chunk, x.cols),
                         nullptr,  x.rows};
    std::size_t o = first;
    const auto at = [&](std::size_t output) HWY_ATTR {
      tile.weights = weights.row_data(output);
      tile.lanes = lanes + (output - first) * x.rows * canonical::lanes_count;
      return tile;
    };
    for (; o + projected_outputs <= last; o += projected_outputs)
      project_rows<projected_outputs>(at(o), x.rows);
    for (; o < last; ++o) project_rows<1>(at(o), x.rows);
  }
  for (std::size_t o = first; o < last; ++o)
    for (std::size_t row = 0; row < x.rows; ++row) {
      lanes16 sum;
      const float* from = lanes + ((o - first) * x.rows + row) * canonical::lanes_count;
      for (std::size_t part = 0; part < parts; ++part) sum.part[part] = load(from + part * width);
      out.row_data(row)[o] = add_lanes(sum);
    }
}

/// out = x * weights^T. A weight costs as much as four of a byte (internal/workers.hpp): it is four
/// bytes long, and from memory if the layer's other weights were read in between.
HWY_INLINE void project(workers threads, const matrix_view<const bf16>& x,
                        const matrix_view<const float>& weights, const matrix_view<float>& out) {
  threads.split(weights.rows, 4, x.cols * (x.rows + 3),
                [&](std::size_t first, std::size_t last)
                    HWY_ATTR { project_outputs(x, weights, first, last, out); });
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
