// One row of x times a weight, for product-inl.hpp.
//
// Weights are decoded in registers, `vector_rows` weight rows at a time so that as many chains of
// fused multiply-adds run side by side as hide their latency.
#if defined(CEDAR_KERNELS_CPU_ONE_ROW_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_ONE_ROW_INL
#undef CEDAR_KERNELS_CPU_ONE_ROW_INL
#else
#define CEDAR_KERNELS_CPU_ONE_ROW_INL
#endif

#include <algorithm>
#include <bit>
#include <type_traits>

#include "kernels/cpu/internal/decode-inl.hpp"
#include "kernels/cpu/internal/scratch.hpp"
#include "kernels/cpu/internal/subnormals.hpp"
#include "kernels/cpu/internal/workers.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// Weight rows of the matrix-vector loop (accumulators: vector_rows * parts).
inline constexpr std::size_t vector_rows = width == 16 ? 8 : 4;

/// Outputs that are computed one after another, as many as have their scales in common in FP8.
inline constexpr std::size_t strip_outputs = 32;
/// How far ahead codes are asked for: half a microsecond of decoding.
inline constexpr std::size_t prefetch_bytes = 1024;

/// Asks for the codes that are read prefetch_bytes after block k, once per cache line: of this row
/// and, after its end, of the row that is `rows` later.
template <class Rows>
HWY_INLINE void prefetch_ahead(const Rows& all, const typename Rows::cursor& at, std::size_t k,
                               std::size_t rows) {
  if constexpr (requires { all.bytes_to_later(rows); }) {
    constexpr std::size_t bytes = Rows::bytes_per_block;
    if (k % (block_size * std::max<std::size_t>(64 / bytes, 1)) != 0) return;
    std::size_t offset = k / block_size * bytes + prefetch_bytes;
    if (offset >= all.bytes_to_later(1)) offset += all.bytes_to_later(rows - 1);
    __builtin_prefetch(
        reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(at.codes) + offset));
  }
}

/// Products of one segment [begin, end) of x with `vector_rows` weight rows; what is read next are
/// the rows that are `rows_ahead` later.
template <class Weights>
HWY_INLINE void multiply_segment(const Weights& weights,
                                 const typename Weights::cursor (&rows)[vector_rows],
                                 const float* x, std::size_t begin, std::size_t end,
                                 std::size_t rows_ahead, four_vector (&sums)[vector_rows / 4]) {
  using decoder = weights_of<Weights>;
  lanes16 lanes[vector_rows];
  for (auto& row : lanes) row = zero_lanes();
  const auto add = [&](std::size_t r, std::size_t k, const lanes16(&values)[2]) HWY_ATTR {
    for (std::size_t half = 0; half < 2; ++half)
      for (std::size_t p = 0; p < parts; ++p)
        lanes[r].part[p] =
            hn::MulAdd(values[half].part[p], load(x + k + 16 * half + width * p), lanes[r].part[p]);
  };
  std::size_t k = begin;
  for (; k + block_size <= end; k += block_size) {
    HWY_UNROLL(8)
    for (std::size_t r = 0; r < vector_rows; ++r) {
      lanes16 values[2];
      decoder::block(rows[r], k, values);
      add(r, k, values);
    }
    for (std::size_t r = 0; r < vector_rows; ++r) prefetch_ahead(weights, rows[r], k, rows_ahead);
  }
  if (k < end)
    for (std::size_t r = 0; r < vector_rows; ++r) {
      lanes16 values[2];
      weights_tail<Weights>(rows[r], k, end - k, values);
      add(r, k, values);
    }
  for (lanes16& row : lanes) row = decoder::order::restore(row);
  for (std::size_t four = 0; four < vector_rows / 4; ++four)
    sums[four] =
        add_lanes(lanes[4 * four], lanes[4 * four + 1], lanes[4 * four + 2], lanes[4 * four + 3]);
}

/// Sums of all segments.
template <class Weights>
HWY_INLINE void multiply_segments(const Weights& weights,
                                  const typename Weights::cursor (&rows)[vector_rows],
                                  const float* x, std::size_t k, std::size_t segments,
                                  std::size_t rows_ahead, float (&out)[vector_rows]) {
  const std::size_t length = k / segments;
  four_vector total[vector_rows / 4];
  multiply_segment(weights, rows, x, 0, length, rows_ahead, total);
  for (std::size_t segment = 1; segment < segments; ++segment) {
    four_vector sums[vector_rows / 4];
    multiply_segment(weights, rows, x, segment * length, (segment + 1) * length, rows_ahead, sums);
    for (std::size_t four = 0; four < vector_rows / 4; ++four)
      total[four] = hn::Add(total[four], sums[four]);
  }
  for (std::size_t four = 0; four < vector_rows / 4; ++four)
    hn::StoreU(total[four], four_tag{}, out + 4 * four);
}

/// Outputs [first, last) of one row, first a multiple of strip_outputs; x has its k elements in the
/// order of the weights, zeros up to whole blocks.
///
/// A whole strip is read in `vector_rows` streams of neighbouring rows: the processor's own
/// prefetching follows each of them, where single rows would end before it has begun.
template <class Weights, class Sink>
HWY_NOINLINE void multiply_vector(const Weights& weights, const float* x, std::size_t k,
                                  std::size_t first, std::size_t last, std::size_t segments,
                                  const Sink& sink) {
  constexpr std::size_t steps = strip_outputs / vector_rows;
  std::size_t count = 0;
  for (std::size_t o = first; o < last; o += count) {
    count = std::min(strip_outputs, last - o);
    const bool whole = count == strip_outputs;
    float sums[strip_outputs];
    for (std::size_t step = 0; step * vector_rows < count; ++step) {
      const std::size_t start = whole ? step : step * vector_rows;
      const std::size_t stride = whole ? steps : 1;
      const std::size_t rows_ahead = !whole             ? vector_rows
                                     : step + 1 < steps ? 1
                                                        : strip_outputs - steps + 1;
      typename Weights::cursor rows[vector_rows];
      for (std::size_t r = 0; r < vector_rows; ++r)
        rows[r] = weights.row(std::min(o + start + r * stride, last - 1));
      float step_sums[vector_rows];
      multiply_segments(weights, rows, x, k, segments, rows_ahead, step_sums);
      for (std::size_t r = 0; r < vector_rows; ++r) sums[start + r * stride] = step_sums[r];
    }
    for (std::size_t four = 0; four < count; four += 4)
      sink(0, o + four, std::min<std::size_t>(4, count - four), hn::LoadU(four_tag{}, sums + four));
  }
}

/// Stores 32 elements of x in the order of weights.
template <class Order>
HWY_INLINE void store_arranged(const lanes16 (&values)[2], float* to) {
  for (std::size_t half = 0; half < 2; ++half) {
    const lanes16 arranged = Order::arrange(values[half]);
    for (std::size_t p = 0; p < parts; ++p) store(arranged.part[p], to + 16 * half + width * p);
  }
}

// ---- scales moved from FP8 weights to x --------------------------------------------------------

/// Biased exponents of numbers, zeros not counted.
struct exponents {
  std::int32_t lowest = 255;
  std::int32_t highest = 0;
};

/// Of `count` numbers, a multiple of 16.
HWY_INLINE exponents exponents_of(const float* x, std::size_t count) {
  const i32_tag integers;
  const exponents none;
  auto lowest = hn::Set(integers, none.lowest);
  auto highest = hn::Set(integers, none.highest);
  for (std::size_t i = 0; i < count; i += width) {
    const f32_vector magnitude = hn::Abs(load(x + i));
    const auto exponent = hn::ShiftRight<23>(hn::BitCast(integers, magnitude));
    const auto is_zero = hn::RebindMask(integers, hn::Eq(magnitude, zero()));
    lowest = hn::Min(lowest, hn::IfThenElse(is_zero, lowest, exponent));
    highest = hn::Max(highest, exponent);
  }
  return {hn::GetLane(hn::MinOfLanes(integers, lowest)),
          hn::GetLane(hn::MaxOfLanes(integers, highest))};
}

/// x times the scales of a strip of weights that are without them, or false if that may round:
/// products are the same as of scaled weights, and so all sums, where scaled x are zeros and normal
/// numbers.
template <class Unscaled>
HWY_INLINE bool scale_x(const float* x, const exponents& range, const std::uint8_t* scales,
                        std::size_t k, float* out) {
  std::uint8_t smallest = 255;
  std::uint8_t largest = 0;
  for (std::size_t block = 0; block < k / block_size; ++block) {
    smallest = std::min(smallest, scales[block]);
    largest = std::max(largest, scales[block]);
  }
  // An unscaled block is codes * 2^-exponent: the factor of scale byte b is 2^(b - bias).
  constexpr std::int32_t bias = 127 - Unscaled::exponent;
  constexpr std::int32_t largest_scale = 127 + bias;
  if (range.lowest < 1 || range.highest > 254 || largest > largest_scale ||
      range.lowest + smallest - bias < 1 || range.highest + largest - bias > 254)
    return false;
  constexpr float unit = std::bit_cast<float>((127 + Unscaled::exponent) << 23);
  for (std::size_t i = 0; i < k; i += block_size) {
    const f32_vector factor = set(e8m0_values[scales[i / block_size]] * unit);
    for (std::size_t at = i; at < i + block_size; at += width)
      store(hn::Mul(load(x + at), factor), out + at);
  }
  return true;
}

/// Outputs [first, last) by weights without their scales, strip by strip where x can take them.
template <class Unscaled, class Sink>
HWY_INLINE void multiply_strips(const fp8_weight_rows& weights, const float* x, std::size_t k,
                                std::size_t first, std::size_t last, std::size_t segments,
                                const Sink& sink) {
  constexpr std::size_t strip = fp8_weight_rows::rows_per_scale;
  static_assert(strip == strip_outputs);
  using order = typename weights_of<Unscaled>::order;
  scratch memory;
  float* scaled = memory.take<float>(k);
  const float* arranged = x;
  if constexpr (!std::is_same_v<order, ascending_order>) {
    float* copy = memory.take<float>(k);
    lanes16 values[2];
    for (std::size_t i = 0; i < k; i += block_size) {
      load_block(x + i, values);
      store_arranged<order>(values, copy + i);
    }
    arranged = copy;
  }
  const exponents range = exponents_of(x, k);
  for (std::size_t o = first; o < last;) {
    const std::size_t end = std::min(o + strip, last);
    if (scale_x<Unscaled>(arranged, range, weights.row(o).scales, k, scaled))
      multiply_vector(Unscaled(weights), scaled, k, o, end, segments, sink);
    else
      multiply_vector<fp8_weight_rows>(weights, x, k, o, end, segments, sink);
    o = end;
  }
}

template <class Sink>
HWY_NOINLINE void multiply_vector(const fp8_weight_rows& weights, const float* x, std::size_t k,
                                  std::size_t first, std::size_t last, std::size_t segments,
                                  const Sink& sink) {
#if HWY_TARGET > HWY_AVX3
  if (subnormals_are_quick())
    return multiply_strips<subnormal_fp8_weight_rows>(weights, x, k, first, last, segments, sink);
#endif
  multiply_strips<unscaled_fp8_weight_rows>(weights, x, k, first, last, segments, sink);
}

// ---- the whole product -------------------------------------------------------------------------

/// What one output costs that is computed for n rows together (internal/workers.hpp): decoding
/// counts as three rows of the register tile, which is four times as fast as the matrix-vector
/// loop.
HWY_INLINE std::size_t output_cost(std::size_t n, std::size_t k) {
  return k * (n + 3) / 4;
}

template <class Rows, class Weights, class Sink>
HWY_INLINE void multiply_one_row(workers threads, const Rows& x, std::size_t k,
                                 const Weights& weights, std::size_t outputs, std::size_t segments,
                                 const Sink& sink) {
  scratch memory;
  float* row = memory.take<float>((k + block_size - 1) / block_size * block_size);
  for_each_block(x, x.row(0), 0, k, [&](std::size_t i, const lanes16(&values)[2]) HWY_ATTR {
    store_arranged<typename weights_of<Weights>::order>(values, row + i);
  });
  threads.split(outputs, strip_outputs, output_cost(1, k),
                [&](std::size_t first, std::size_t last)
                    HWY_ATTR { multiply_vector(weights, row, k, first, last, segments, sink); });
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
