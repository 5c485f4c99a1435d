// y = x * W^T for any pair of row formats of decode-inl.hpp, in the canonical order: one row of x
// by one_row-inl.hpp, more by many_rows-inl.hpp.
//
// Several threads: outputs are divided, by whole strips; rows only where there are few outputs.
//
// Results go to a sink: sink(row, first, count, sums) with sums of outputs first .. first+count-1,
// count <= 4. Sinks are called once per output, from any of the threads.
#if defined(CEDAR_KERNELS_CPU_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_PRODUCT_INL
#undef CEDAR_KERNELS_CPU_PRODUCT_INL
#else
#define CEDAR_KERNELS_CPU_PRODUCT_INL
#endif

#include "kernels/cpu/internal/many_rows-inl.hpp"
#include "kernels/cpu/internal/one_row-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// An output [n, o] of bf16 or binary32 numbers.
template <class T>
struct matrix_sink {
  matrix_view<T> y;

  HWY_INLINE void operator()(std::size_t row, std::size_t first, std::size_t count,
                             four_vector sums) const {
    T* to = y.row_data(row) + first;
    if (HWY_LIKELY(count == 4)) {
      put(sums, to);
    } else {
      T all[4];
      put(sums, all);
      std::copy_n(all, count, to);
    }
  }

 private:
  static HWY_INLINE void put(four_vector sums, float* to) { hn::StoreU(sums, four_tag{}, to); }
  static HWY_INLINE void put(four_vector sums, bf16* to) { store_bf16(four_tag{}, sums, to); }
};

/// x [n, k] times weights [outputs, k].
template <class Rows, class Weights, class Sink>
HWY_INLINE void multiply(workers threads, const Rows& x, std::size_t n, std::size_t k,
                         const Weights& weights, std::size_t outputs, std::size_t segments,
                         const Sink& sink) {
  if (outputs == 0) return;
  require_columns(k);
  if (n == 1) return multiply_one_row(threads, x, k, weights, outputs, segments, sink);
  const std::size_t fitting = tile_floats / std::max<std::size_t>(padded_columns(k, segments), 1);
  const std::size_t most = std::clamp(fitting / tile_rows * tile_rows, tile_rows, most_tile_rows);
  // Tiles of the same size: a small last one would decode all weights for few rows.
  const std::size_t tiles = (n + most - 1) / most;
  const std::size_t tile = ((n + tiles - 1) / tiles + tile_rows - 1) / tile_rows * tile_rows;
  const bool few_outputs = outputs < 2 * strip_rows * threads.threads();
  if (!few_outputs || n <= tile)
    return multiply_tiles(threads, x, 0, n, tile, k, weights, outputs, segments, sink);
  threads.split(n, tile, outputs * output_cost(tile, k) / tile,
                [&](std::size_t first, std::size_t last) HWY_ATTR {
                  multiply_tiles(workers{}, x, first, last, tile, k, weights, outputs, segments,
                                 sink);
                });
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
