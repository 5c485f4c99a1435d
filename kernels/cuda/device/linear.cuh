// y = x * W^T, of few rows and of many. Both kernels keep the order of sum_order, so a row has the
// same bits from either, whatever other rows the call has.
#pragma once

#include "kernels/cuda/device/linear_product.cuh"

namespace cedar::kernels::cuda {

/// Where sums go: rounded to bf16 with an optional bias, or as they are.
struct half_output {
  global_rows<bf16> y;  ///< [n, o]
  global_array<const bf16> bias;  ///< [o], or empty

  CEDAR_DEVICE void store(unsigned row, unsigned output, float sum) const {
    if (row >= y.rows || output >= y.cols) return;
    const float offset = bias.size == 0 ? 0.0F : widen(bias.load(output));
    y.store(row, output, round_bf16(sum + offset));
  }
};

struct full_output {
  global_rows<float> y;  ///< [n, o]

  CEDAR_DEVICE void store(unsigned row, unsigned output, float sum) const {
    if (row < y.rows && output < y.cols) y.store(row, output, sum);
  }
};

/// A layer, and what becomes of its sums.
template <class Output>
struct linear_product {
  linear_operands in;
  Output out;

  /// Whether there is anything of it at `output` and `row`.
  CEDAR_DEVICE bool has(unsigned output, unsigned row) const {
    return output < in.weight.rows && row < in.rows.rows;
  }
};

// ---- what a launch computes, by the grid's z --------------------------------------------------

template <class Output>
struct one_product {
  linear_product<Output> product;

  CEDAR_DEVICE const linear_product<Output>& at(unsigned) const { return product; }
};

template <class Arguments>
CEDAR_DEVICE linear_product<half_output> product_of(const Arguments& arguments) {
  return {operands_of(arguments), {rows_of(arguments.y), {}}};
}

/// Most products of carried_products: a row's experts.
inline constexpr unsigned carried_products_max = 16;
inline constexpr std::size_t parameter_bytes_max = 4096;  // on every architecture

/// Several, in the parameters of the launch: nothing is to be fetched first.
template <class Arguments>
struct carried_products {
  static_assert(carried_products_max * sizeof(Arguments) <= parameter_bytes_max);
  Arguments all[carried_products_max];

  CEDAR_DEVICE linear_product<half_output> at(unsigned index) const {
    return product_of(all[index]);
  }
};

/// More of them, where the caller has them.
template <class Arguments>
struct listed_products {
  global_array<const Arguments> all;

  CEDAR_DEVICE linear_product<half_output> at(unsigned index) const {
    return product_of(all.at(index));
  }
};

/// Row and output of sum `i` of a fragment, counted from the fragment's first.
CEDAR_DEVICE unsigned fragment_row(unsigned i) {
  return lane_index() % 4 * 2 + i % 2;
}
CEDAR_DEVICE unsigned fragment_output(unsigned i) {
  return lane_index() / 4 + i / 2 * 8;
}

/// Where a part of the result begins, and its size.
struct tile_place {
  unsigned output;
  unsigned row;
};
struct tile_size {
  unsigned outputs;
  unsigned rows;
};

/// Brings those scales of a slice that the formats have.
template <weight_format Weights, row_format Rows>
CEDAR_DEVICE void bring_slice_scales(const warp_tiles& to, const linear_operands& in, tile_place at,
                                     tile_size size, const slice& part, unsigned thread,
                                     unsigned threads) {
  if constexpr (Weights != weight_format::bf16)
    bring_scales(to.weight_scales,
                 {in.weight_scales, at.output, size.outputs, in.outputs_per_scale}, part, thread,
                 threads);
  if constexpr (Rows == row_format::e4m3)
    bring_scales(to.row_scales, {in.row_scales, at.row, size.rows, 1}, part, thread, threads);
}

// ---- few rows -------------------------------------------------------------------------------

inline constexpr unsigned few_threads = plan::few_warps * warp_threads;
inline constexpr unsigned few_stages = 4;
inline constexpr unsigned few_tile = plan::few_outputs * plan::few_rows;
inline constexpr unsigned few_scales = (plan::few_outputs + plan::few_rows) * scale_pitch;

template <weight_format Weights, row_format Rows>
constexpr std::size_t few_shared_bytes() {
  constexpr unsigned rings = plan::few_warps * few_stages;
  return shared_bytes_of<std::uint8_t>(rings * tile_bytes<Weights>(plan::few_outputs)) +
         shared_bytes_of<std::uint8_t>(rings * tile_bytes<Rows>(plan::few_rows)) +
         shared_bytes_of<float>(plan::few_warps * few_scales) +
         shared_bytes_of<float>(plan::few_warps * few_tile);
}

/// A warp's own ring of chunks: no other warp waits for its copies, nor it for theirs.
template <weight_format Weights, row_format Rows>
class warp_ring {
 public:
  static constexpr unsigned weight_bytes = tile_bytes<Weights>(plan::few_outputs);
  static constexpr unsigned row_bytes = tile_bytes<Rows>(plan::few_rows);

  /// `tiles` has few_stages chunks of weights and rows.
  CEDAR_DEVICE warp_ring(const warp_tiles& tiles, const linear_operands& in, tile_place at)
      : tiles_(tiles), in_(in), at_(at) {}

  /// The sums of a slice. A barrier lies between it and the next.
  CEDAR_DEVICE void add_slice(warp_sums<1>& sums, const slice& part) const {
    constexpr unsigned chunk = plan::chunk_columns;
    for (unsigned i = 0; i + 1 < few_stages; ++i) bring(part, part.first + i * chunk, i);
    bring_slice_scales<Weights, Rows>(tiles_, in_, at_, {plan::few_outputs, plan::few_rows}, part,
                                      lane_index(), warp_threads);
    unsigned stage = 0;
    for (unsigned column = part.first; column < part.end; column += chunk) {
      wait_copies<few_stages - 2>();
      sync_warp();
      bring(part, column + (few_stages - 1) * chunk, (stage + few_stages - 1) % few_stages);
      add_chunk<Weights, Rows, 1>(sums, chunk_at(stage), plan::few_rows, part, column);
      stage = (stage + 1) % few_stages;
    }
    wait_copies<0>();
  }

 private:
  CEDAR_DEVICE warp_tiles chunk_at(unsigned stage) const {
    return {tiles_.weights.part(stage * weight_bytes, weight_bytes),
            tiles_.rows.part(stage * row_bytes, row_bytes), tiles_.weight_scales,
            tiles_.row_scales};
  }

  CEDAR_DEVICE void bring(const slice& part, unsigned column, unsigned stage) const {
    if (column < part.end) {
      const warp_tiles to = chunk_at(stage);
      bring_tile<Weights, plan::few_outputs>(to.weights, {in_.weight, at_.output, column, part.end},
                                             lane_index(), warp_threads);
      bring_tile<Rows, plan::few_rows>(to.rows, {in_.rows, at_.row, column, part.end}, lane_index(),
                                       warp_threads);
    }
    commit_copies();
  }

  warp_tiles tiles_;
  const linear_operands& in_;
  tile_place at_;
};

/// Grid: x over 16 outputs, y over 8 rows, z over products. Warps compute slices side by side; the
/// block adds them in order.
template <weight_format Weights, row_format Rows, class Products>
CEDAR_KERNEL(few_threads)
void multiply_few(Products products) {
  const tile_place at{block_index().x * plan::few_outputs, block_index().y * plan::few_rows};
  const auto& product = products.at(block_index().z);
  if (!product.has(at.output, at.row)) return;
  const linear_operands& in = product.in;
  using ring_type = warp_ring<Weights, Rows>;
  constexpr unsigned weight_bytes = few_stages * ring_type::weight_bytes;
  constexpr unsigned row_bytes = few_stages * ring_type::row_bytes;
  constexpr unsigned weight_scales = plan::few_outputs * scale_pitch;
  constexpr unsigned row_scales = plan::few_rows * scale_pitch;
  dynamic_shared shared;
  const auto weights = shared.take<std::uint8_t>(plan::few_warps * weight_bytes, "weights");
  const auto rows = shared.take<std::uint8_t>(plan::few_warps * row_bytes, "rows");
  const auto scales = shared.take<float>(plan::few_warps * few_scales, "scales");
  const auto parts = shared.take<float>(plan::few_warps * few_tile, "parts");
  const unsigned warp = warp_index(), thread = thread_index();
  const ring_type ring(
      {weights.part(warp * weight_bytes, weight_bytes), rows.part(warp * row_bytes, row_bytes),
       scales.part(warp * few_scales, weight_scales),
       scales.part(warp * few_scales + weight_scales, row_scales)},
      in, at);
  const unsigned slices = in.order.slices();
  ordered_sum sum;  // of the first few_tile threads: row thread / 16, output thread % 16
  for (unsigned first = 0; first < slices; first += plan::few_warps) {
    if (first + warp < slices) {
      warp_sums<1> sums = {};
      ring.add_slice(sums, in.order.at(first + warp));
      for (unsigned i = 0; i < 4; ++i)
        parts.store(warp * few_tile + fragment_row(i) * plan::few_outputs + fragment_output(i),
                    sums[0][i]);
    }
    sync_block();
    for (unsigned w = 0; thread < few_tile && w < plan::few_warps && first + w < slices; ++w)
      sum.add(parts.load(w * few_tile + thread), in.order.at(first + w).ends_segment);
    sync_block();
  }
  if (thread < few_tile)
    product.out.store(at.row + thread / plan::few_outputs, at.output + thread % plan::few_outputs,
                      sum.total);
}

// ---- many rows ------------------------------------------------------------------------------

inline constexpr unsigned many_threads = plan::many_warps * warp_threads;
inline constexpr unsigned many_stages = 3;
inline constexpr unsigned many_fragments = plan::many_rows / 8;
inline constexpr unsigned many_weight_scales = plan::many_outputs * scale_pitch;
inline constexpr unsigned many_row_scales = plan::many_rows * scale_pitch;

template <weight_format Weights, row_format Rows>
constexpr std::size_t many_shared_bytes() {
  return shared_bytes_of<std::uint8_t>(many_stages * tile_bytes<Weights>(plan::many_outputs)) +
         shared_bytes_of<std::uint8_t>(many_stages * tile_bytes<Rows>(plan::many_rows)) +
         shared_bytes_of<float>(2 * many_weight_scales) +
         shared_bytes_of<float>(2 * many_row_scales);
}

/// Slices added so far, of every sum of a warp.
struct many_sums {
  warp_sums<many_fragments> slice = {};
  ordered_sum ordered[many_fragments][4];

  CEDAR_DEVICE void close_slice(bool ends_segment) {
    for (unsigned t = 0; t < many_fragments; ++t)
      for (unsigned i = 0; i < 4; ++i) {
        ordered[t][i].add(slice[t][i], ends_segment);
        slice[t][i] = 0;
      }
  }
};

/// The ring of a block: chunks that all its warps read, and the scales of two slices, because some
/// warps may still be at the last one when others bring the next.
template <weight_format Weights, row_format Rows>
class block_ring {
 public:
  CEDAR_DEVICE block_ring(const warp_tiles& tiles, const linear_operands& in, tile_place at)
      : tiles_(tiles), in_(in), at_(at), ahead_(in.order) {}

  /// Starts the copies of the next chunk, if there is one.
  CEDAR_DEVICE void bring(unsigned stage) {
    if (!ahead_.done()) {
      const unsigned column = ahead_.first(), end = ahead_.within().end;
      bring_tile<Weights, plan::many_outputs>(
          tiles_.weights.part(stage * weight_bytes, weight_bytes),
          {in_.weight, at_.output, column, end}, thread_index(), many_threads);
      bring_tile<Rows, plan::many_rows>(tiles_.rows.part(stage * row_bytes, row_bytes),
                                        {in_.rows, at_.row, column, end}, thread_index(),
                                        many_threads);
      ahead_.advance();
    }
    commit_copies();
  }

  CEDAR_DEVICE void bring_scales(const chunk_walk& now) const {
    bring_slice_scales<Weights, Rows>(
        {tiles_.weights, tiles_.rows, weight_scales(now), row_scales(now)}, in_, at_,
        {plan::many_outputs, plan::many_rows}, now.within(), thread_index(), many_threads);
  }

  /// What this warp reads of the chunk.
  CEDAR_DEVICE warp_tiles of_warp(unsigned stage, const chunk_walk& now) const {
    constexpr unsigned warp_bytes = tile_bytes<Weights>(plan::few_outputs);
    constexpr unsigned warp_scales = plan::few_outputs * scale_pitch;
    return {tiles_.weights.part(stage * weight_bytes + warp_index() * warp_bytes, warp_bytes),
            tiles_.rows.part(stage * row_bytes, row_bytes),
            weight_scales(now).part(warp_index() * warp_scales, warp_scales), row_scales(now)};
  }

 private:
  static constexpr unsigned weight_bytes = tile_bytes<Weights>(plan::many_outputs);
  static constexpr unsigned row_bytes = tile_bytes<Rows>(plan::many_rows);

  CEDAR_DEVICE shared_array<float> weight_scales(const chunk_walk& now) const {
    return tiles_.weight_scales.part(now.slice_index() % 2 * many_weight_scales,
                                     many_weight_scales);
  }
  CEDAR_DEVICE shared_array<float> row_scales(const chunk_walk& now) const {
    return tiles_.row_scales.part(now.slice_index() % 2 * many_row_scales, many_row_scales);
  }

  warp_tiles tiles_;
  const linear_operands& in_;
  tile_place at_;
  chunk_walk ahead_;
};

/// Grid: x over 64 outputs, y over 64 rows, z over products. A warp has 16 outputs and all the
/// rows.
template <weight_format Weights, row_format Rows, class Products>
CEDAR_KERNEL(many_threads)
void multiply_many(Products products) {
  const tile_place at{block_index().x * plan::many_outputs, block_index().y * plan::many_rows};
  const auto& product = products.at(block_index().z);
  if (!product.has(at.output, at.row)) return;
  const linear_operands& in = product.in;
  dynamic_shared shared;
  block_ring<Weights, Rows> ring(
      {shared.take<std::uint8_t>(many_stages * tile_bytes<Weights>(plan::many_outputs), "weights"),
       shared.take<std::uint8_t>(many_stages * tile_bytes<Rows>(plan::many_rows), "rows"),
       shared.take<float>(2 * many_weight_scales, "weight scales"),
       shared.take<float>(2 * many_row_scales, "row scales")},
      in, at);
  for (unsigned i = 0; i + 1 < many_stages; ++i) ring.bring(i);
  many_sums sums;
  chunk_walk now(in.order);
  for (unsigned stage = 0; !now.done(); stage = (stage + 1) % many_stages) {
    if (now.begins_slice()) ring.bring_scales(now);
    wait_copies<many_stages - 2>();
    sync_block();  // the chunk is there, and that before it is no longer read
    ring.bring((stage + many_stages - 1) % many_stages);
    add_chunk<Weights, Rows, many_fragments>(sums.slice, ring.of_warp(stage, now),
                                             static_cast<unsigned>(in.rows.rows) - at.row,
                                             now.within(), now.first());
    if (now.ends_slice()) sums.close_slice(now.within().ends_segment);
    now.advance();
  }
  const unsigned output = at.output + warp_index() * plan::few_outputs;
  for (unsigned t = 0; t < many_fragments; ++t)
    for (unsigned i = 0; i < 4; ++i)
      product.out.store(at.row + 8 * t + fragment_row(i), output + fragment_output(i),
                        sums.ordered[t][i].total);
}

}  // namespace cedar::kernels::cuda
