// Many rows of x times a weight, for product-inl.hpp.
//
// x is dequantised once per tile of rows, laid out so that a pass reads it from front to back; each
// strip of weight rows is decoded once per tile, a chunk of columns at a time, and multiplied with
// all its rows. Where a register has 8 elements, lanes 0..7 of all blocks lie before lanes 8..15,
// and two passes use the same small register tile: 16 lanes cost no more than 8 would.
#if defined(CEDAR_KERNELS_CPU_MANY_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_MANY_ROWS_INL
#undef CEDAR_KERNELS_CPU_MANY_ROWS_INL
#else
#define CEDAR_KERNELS_CPU_MANY_ROWS_INL
#endif

#include <algorithm>

#include "kernels/cpu/internal/one_row-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// Register tile of the matrix-matrix loop: this many weight rows by this many rows of x.
inline constexpr std::size_t tile_outputs = width == 16 ? 8 : 4;
inline constexpr std::size_t tile_rows = 3;
/// Weight rows that are decoded together, and columns of a pass: 16 or 24 KiB of binary32 in the L1
/// cache, beside three rows of x.
inline constexpr std::size_t strip_rows = 8;
inline constexpr std::size_t chunk_columns = width == 16 ? 768 : 512;
/// Rows of x that share a decoded strip: at most 96, and as much binary32 as fits the L2 cache:
/// half a MiB, or 1.3 MiB (64 rows of 5120).
inline constexpr std::size_t most_tile_rows = 96;
inline constexpr std::size_t tile_floats = width == 16 ? 66 * 5120 : std::size_t{1} << 17;

/// Rows of binary32 numbers, chunk by chunk: all rows of the first chunk_columns columns, then of
/// the next, and so on (a chunk never crosses the end of a segment). Within a row of a chunk, part
/// p of all lanes16 follows part p-1 of all.
struct packed_tile {
  float* data = nullptr;
  std::size_t rows = 0;
};

/// The chunks of [0, k): visit(begin, end, columns rounded up to whole blocks, ends a segment).
template <class Visit>
HWY_INLINE void for_each_chunk(std::size_t k, std::size_t segments, const Visit& visit) {
  const std::size_t length = k / segments;
  for (std::size_t segment = 0; segment < segments; ++segment) {
    const std::size_t last = (segment + 1) * length;
    for (std::size_t begin = segment * length; begin < last; begin += chunk_columns) {
      const std::size_t end = std::min(begin + chunk_columns, last);
      visit(begin, end, (end - begin + block_size - 1) / block_size * block_size, end == last);
    }
  }
}

inline std::size_t padded_columns(std::size_t k, std::size_t segments) {
  std::size_t columns = 0;
  for_each_chunk(k, segments,
                 [&](std::size_t, std::size_t, std::size_t padded, bool) { columns += padded; });
  return columns;
}

/// Asks for the cache line of column k in the row that is `rows` later: rows are short, so that the
/// processor's own prefetching starts anew for most of them. Once per line of codes.
template <class Rows>
HWY_INLINE void prefetch_later(const Rows& all, const typename Rows::cursor& at, std::size_t k,
                               std::size_t rows) {
  if constexpr (requires { all.bytes_to_later(rows); }) {
    constexpr std::size_t bytes = Rows::bytes_per_block;
    if (k % (block_size * std::max<std::size_t>(64 / bytes, 1)) != 0) return;
    const std::size_t offset = k / block_size * bytes + all.bytes_to_later(rows);
    __builtin_prefetch(
        reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(at.codes) + offset));
  }
}

/// Writes block k of a chunk's row that begins at column `begin`.
HWY_INLINE void store_block(const lanes16 (&values)[2], std::size_t k, std::size_t begin,
                            std::size_t padded, float* out) {
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t p = 0; p < parts; ++p)
      store(values[half].part[p], out + p * (padded / parts) + ((k - begin) / 16 + half) * width);
}

/// Decodes columns [begin, end) of a weight row to the layout of a chunk's row.
template <class Weights>
HWY_NOINLINE void decode_chunk(const Weights& weights, const typename Weights::cursor& at,
                               std::size_t begin, std::size_t end, std::size_t padded, float* out) {
  lanes16 values[2];
  std::size_t k = begin;
  for (; k + block_size <= end; k += block_size) {
    weights_of<Weights>::block(at, k, values);
    prefetch_later(weights, at, k, strip_rows);
    store_block(values, k, begin, padded, out);
  }
  if (k < end) {
    weights_tail<Weights>(at, k, end - k, values);
    store_block(values, k, begin, padded, out);
  }
}

/// Rows [begin_row, end_row) of a tile whose row 0 is row `first` of all, in the given order.
template <class Order, class Rows>
HWY_INLINE void pack_rows(const Rows& rows, std::size_t first, std::size_t k, std::size_t segments,
                          const packed_tile& tile, std::size_t begin_row, std::size_t end_row) {
  float* out = tile.data;
  for_each_chunk(k, segments, [&](std::size_t begin, std::size_t end, std::size_t padded, bool) {
    for (std::size_t r = begin_row; r < end_row; ++r)
      for_each_block(
          rows, rows.row(first + r), begin, end,
          [&](std::size_t at, const lanes16(&values)[2]) HWY_ATTR {
            const lanes16 arranged[2] = {Order::arrange(values[0]), Order::arrange(values[1])};
            store_block(arranged, at, begin, padded, out + r * padded);
          });
    out += tile.rows * padded;
  });
}

/// The register tile: lanes [tile_outputs][Rows] += w [rows of w_stride] * x [Rows of x_stride].
template <std::size_t Rows>
HWY_INLINE void multiply_tile(const float* w, std::size_t w_stride, const float* x,
                              std::size_t x_stride, std::size_t length, bool fresh, float* lanes) {
  f32_vector sums[tile_outputs][Rows];
  for (std::size_t a = 0; a < tile_outputs; ++a)
    for (std::size_t b = 0; b < Rows; ++b)
      sums[a][b] = fresh ? zero() : load(lanes + (a * Rows + b) * width);
  for (std::size_t i = 0; i < length; i += width) {
    f32_vector xs[Rows];
    HWY_UNROLL(8)
    for (std::size_t b = 0; b < Rows; ++b) xs[b] = load(x + b * x_stride + i);
    HWY_UNROLL(8)
    for (std::size_t a = 0; a < tile_outputs; ++a) {
      f32_vector ws = load(w + a * w_stride + i);
      // One load: the compiler would read it anew for every product, and loads would bind.
      __asm__("" : "+v"(ws.raw));
      HWY_UNROLL(8)
      for (std::size_t b = 0; b < Rows; ++b) sums[a][b] = hn::MulAdd(ws, xs[b], sums[a][b]);
    }
  }
  for (std::size_t a = 0; a < tile_outputs; ++a)
    for (std::size_t b = 0; b < Rows; ++b) store(sums[a][b], lanes + (a * Rows + b) * width);
}

/// Row b of a register tile: the sums of outputs first .. first+3.
/// lanes [parts][tile_outputs][Rows][width].
template <class Order, std::size_t Rows>
HWY_INLINE four_vector tile_sums(const float* lanes, std::size_t first, std::size_t b) {
  lanes16 sums[4];
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t p = 0; p < parts; ++p)
      sums[a].part[p] = load(lanes + ((p * tile_outputs + first + a) * Rows + b) * width);
    sums[a] = Order::restore(sums[a]);
  }
  return add_lanes(sums[0], sums[1], sums[2], sums[3]);
}

/// A strip of up to 8 decoded weight rows against a tile of x.
struct strip_state {
  const float* weights = nullptr;  ///< [strip_rows][padded]: one chunk
  float* lanes = nullptr;  ///< [rows of x][strip_rows][16 lanes], by register tiles
  float* totals = nullptr;  ///< [rows of x][strip_rows]: finished segments
  std::size_t first = 0;  ///< output of weight row 0
  std::size_t count = 0;  ///< weight rows that exist
  std::size_t padded = 0;  ///< columns of the chunk
  bool fresh = false;  ///< the chunk begins a segment
  bool ends_segment = false;
  bool first_segment = false;
  bool last_segment = false;
};

/// Rows row .. row+Rows-1 of x with the whole strip.
template <class Order, std::size_t Rows, class Sink>
HWY_INLINE void multiply_rows(const strip_state& strip, const float* x, std::size_t row,
                              std::size_t first_row, const Sink& sink) {
  const std::size_t part_floats = strip.padded / parts;
  for (std::size_t output = 0; output < strip.count; output += tile_outputs) {
    float* lanes = strip.lanes + (row * strip_rows + output * Rows) * canonical::lanes_count;
    for (std::size_t p = 0; p < parts; ++p)
      multiply_tile<Rows>(strip.weights + output * strip.padded + p * part_floats, strip.padded,
                          x + row * strip.padded + p * part_floats, strip.padded, part_floats,
                          strip.fresh, lanes + p * tile_outputs * Rows * width);
    if (!strip.ends_segment) continue;
    for (std::size_t four = 0; four < tile_outputs && output + four < strip.count; four += 4)
      for (std::size_t b = 0; b < Rows; ++b) {
        const std::size_t first = output + four;
        four_vector sums = tile_sums<Order, Rows>(lanes, four, b);
        float* total = strip.totals + (row + b) * strip_rows + first;
        if (!strip.first_segment) sums = hn::Add(hn::LoadU(four_tag{}, total), sums);
        if (strip.last_segment)
          sink(first_row + row + b, strip.first + first,
               std::min<std::size_t>(4, strip.count - first), sums);
        else
          hn::StoreU(sums, four_tag{}, total);
      }
  }
}

template <class Order, class Sink>
HWY_NOINLINE void multiply_strip(const strip_state& strip, const float* x, std::size_t rows,
                                 std::size_t first_row, const Sink& sink) {
  static_assert(tile_rows == 3);
  std::size_t row = 0;
  for (; row + 3 <= rows && row + 4 != rows; row += 3)
    multiply_rows<Order, 3>(strip, x, row, first_row, sink);
  for (; row + 2 <= rows; row += 2) multiply_rows<Order, 2>(strip, x, row, first_row, sink);
  if (row < rows) multiply_rows<Order, 1>(strip, x, row, first_row, sink);
}

/// Outputs [first, last) of all rows of a packed tile; first_row is the number of its first row.
template <class Weights, class Sink>
HWY_NOINLINE void multiply_matrix(const Weights& weights, const packed_tile& tile, std::size_t k,
                                  std::size_t first, std::size_t last, std::size_t segments,
                                  std::size_t first_row, const Sink& sink) {
  scratch memory;
  float* decoded = memory.take<float>(strip_rows * chunk_columns);
  strip_state strip;
  strip.weights = decoded;
  strip.lanes = memory.take<float>(tile.rows * strip_rows * canonical::lanes_count);
  strip.totals = memory.take<float>(tile.rows * strip_rows);
  const std::size_t length = k / segments;
  for (std::size_t o = first; o < last; o += strip_rows) {
    strip.first = o;
    strip.count = std::min(strip_rows, last - o);
    const float* x = tile.data;
    for_each_chunk(k, segments,
                   [&](std::size_t begin, std::size_t end, std::size_t padded, bool ends_segment) {
                     for (std::size_t r = 0; r < strip_rows; ++r)
                       decode_chunk(weights, weights.row(std::min(o + r, last - 1)), begin, end,
                                    padded, decoded + r * padded);
                     strip.padded = padded;
                     strip.fresh = begin % length == 0;
                     strip.ends_segment = ends_segment;
                     strip.first_segment = begin < length;
                     strip.last_segment = end == k;
                     multiply_strip<typename weights_of<Weights>::order>(strip, x, tile.rows,
                                                                         first_row, sink);
                     x += tile.rows * padded;
                   });
  }
}

/// Rows [first_row, last_row), in tiles of up to `tile_size`.
template <class Rows, class Weights, class Sink>
HWY_NOINLINE void multiply_tiles(workers threads, const Rows& x, std::size_t first_row,
                                 std::size_t last_row, std::size_t tile_size, std::size_t k,
                                 const Weights& weights, std::size_t outputs, std::size_t segments,
                                 const Sink& sink) {
  scratch memory;
  const std::size_t columns = padded_columns(k, segments);
  packed_tile tile{memory.take<float>(std::min(tile_size, last_row - first_row) * columns), 0};
  for (std::size_t at = first_row; at < last_row; at += tile_size) {
    tile.rows = std::min(tile_size, last_row - at);
    threads.split(tile.rows, 1, 2 * k, [&](std::size_t begin, std::size_t end) HWY_ATTR {
      pack_rows<typename weights_of<Weights>::order>(x, at, k, segments, tile, begin, end);
    });
    threads.split(outputs, strip_rows, output_cost(tile.rows, k),
                  [&](std::size_t first, std::size_t last) HWY_ATTR {
                    multiply_matrix(weights, tile, k, first, last, segments, at, sink);
                  });
  }
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
