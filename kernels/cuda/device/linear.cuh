// y = x * W^T, of few rows and of many. Both kernels keep the order of sum_order, so a row has the
// same bits from either, whatever other rows the call has.
#pragma once

#include "kernels/cuda/device/linear_tiles.cuh"

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

/// Row and output of sum `i` of a fragment, counted from the fragment's first.
CEDAR_DEVICE unsigned fragment_row(unsigned i) {
  return lane_index() % 4 * 2 + i % 2;
}
CEDAR_DEVICE unsigned fragment_output(unsigned i) {
  return lane_index() / 4 + i / 2 * 8;
}

// ---- few rows -------------------------------------------------------------------------------

inline constexpr unsigned few_threads = plan::few_warps * warp_threads;
inline constexpr unsigned few_stages = 4;
inline constexpr unsigned few_tile = plan::few_outputs * plan::few_rows;

template <weight_format Weights, row_format Rows>
constexpr std::size_t few_shared_bytes() {
  constexpr unsigned rings = plan::few_warps * few_stages;
  return shared_bytes_of<std::uint8_t>(rings * tile_bytes<Weights>(plan::few_outputs)) +
         shared_bytes_of<std::uint8_t>(rings * tile_bytes<Rows>(plan::few_rows)) +
         shared_bytes_of<float>(plan::few_warps * few_tile);
}

/// A warp's own ring of chunks: no other warp waits for its copies, nor it for theirs.
template <weight_format Weights, row_format Rows>
class warp_ring {
 public:
  CEDAR_DEVICE warp_ring(const shared_array<std::uint8_t>& weights,
                         const shared_array<std::uint8_t>& rows)
      : weights_(weights), rows_(rows) {}

  /// The sums of a slice. A barrier lies between it and the next.
  CEDAR_DEVICE void add_slice(warp_sums<1>& sums, const linear_operands& in, warp_place at,
                              const slice& part) const {
    constexpr unsigned chunk = plan::chunk_columns;
    for (unsigned i = 0; i + 1 < few_stages; ++i) bring(in, at, part, part.first + i * chunk, i);
    unsigned stage = 0;
    for (unsigned column = part.first; column < part.end; column += chunk) {
      wait_copies<few_stages - 2>();
      sync_warp();
      bring(in, at, part, column + (few_stages - 1) * chunk, (stage + few_stages - 1) % few_stages);
      add_chunk<Weights, Rows, 1>(sums, weights_.part(stage * weight_bytes, weight_bytes),
                                  rows_.part(stage * row_bytes, row_bytes), in, at, column,
                                  part.end);
      stage = (stage + 1) % few_stages;
    }
    wait_copies<0>();
  }

 private:
  static constexpr unsigned weight_bytes = tile_bytes<Weights>(plan::few_outputs);
  static constexpr unsigned row_bytes = tile_bytes<Rows>(plan::few_rows);

  CEDAR_DEVICE void bring(const linear_operands& in, warp_place at, const slice& part,
                          unsigned column, unsigned stage) const {
    if (column < part.end) {
      bring_tile<Weights, plan::few_outputs>(weights_.part(stage * weight_bytes, weight_bytes),
                                             {in.weight, at.output, column, part.end}, lane_index(),
                                             warp_threads);
      bring_tile<Rows, plan::few_rows>(rows_.part(stage * row_bytes, row_bytes),
                                       {in.rows, at.row, column, part.end}, lane_index(),
                                       warp_threads);
    }
    commit_copies();
  }

  shared_array<std::uint8_t> weights_;
  shared_array<std::uint8_t> rows_;
};

/// Grid: x over 16 outputs, y over 8 rows. Warps compute slices side by side; the block adds them
/// in order.
template <weight_format Weights, row_format Rows, class Output>
CEDAR_KERNEL(few_threads)
void multiply_few(linear_operands in, Output out) {
  constexpr unsigned weight_bytes = few_stages * tile_bytes<Weights>(plan::few_outputs);
  constexpr unsigned row_bytes = few_stages * tile_bytes<Rows>(plan::few_rows);
  dynamic_shared shared;
  const auto weights = shared.take<std::uint8_t>(plan::few_warps * weight_bytes, "weights");
  const auto rows = shared.take<std::uint8_t>(plan::few_warps * row_bytes, "rows");
  const auto parts = shared.take<float>(plan::few_warps * few_tile, "parts");
  const unsigned warp = warp_index(), thread = thread_index();
  const warp_place at{block_index().x * plan::few_outputs, block_index().y * plan::few_rows};
  const warp_ring<Weights, Rows> ring(weights.part(warp * weight_bytes, weight_bytes),
                                      rows.part(warp * row_bytes, row_bytes));
  const unsigned slices = in.order.slices();
  ordered_sum sum;  // of the first few_tile threads: row thread / 16, output thread % 16
  for (unsigned first = 0; first < slices; first += plan::few_warps) {
    if (first + warp < slices) {
      warp_sums<1> sums = {};
      ring.add_slice(sums, in, at, in.order.at(first + warp));
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
    out.store(at.row + thread / plan::few_outputs, at.output + thread % plan::few_outputs,
              sum.total);
}

// ---- many rows ------------------------------------------------------------------------------

inline constexpr unsigned many_threads = plan::many_warps * warp_threads;
inline constexpr unsigned many_stages = 3;
inline constexpr unsigned many_tiles = plan::many_rows / 8;

template <weight_format Weights, row_format Rows>
constexpr std::size_t many_shared_bytes() {
  return shared_bytes_of<std::uint8_t>(many_stages * tile_bytes<Weights>(plan::many_outputs)) +
         shared_bytes_of<std::uint8_t>(many_stages * tile_bytes<Rows>(plan::many_rows));
}

/// Slices added so far, of every sum of a warp.
struct many_sums {
  warp_sums<many_tiles> slice = {};
  ordered_sum ordered[many_tiles][4];

  CEDAR_DEVICE void close_slice(bool ends_segment) {
    for (unsigned t = 0; t < many_tiles; ++t)
      for (unsigned i = 0; i < 4; ++i) {
        ordered[t][i].add(slice[t][i], ends_segment);
        slice[t][i] = 0;
      }
  }
};

/// Grid: x over 64 outputs, y over 64 rows. A warp has 16 outputs and all the rows.
template <weight_format Weights, row_format Rows, class Output>
CEDAR_KERNEL(many_threads)
void multiply_many(linear_operands in, Output out) {
  constexpr unsigned weight_bytes = tile_bytes<Weights>(plan::many_outputs);
  constexpr unsigned row_bytes = tile_bytes<Rows>(plan::many_rows);
  constexpr unsigned warp_bytes = tile_bytes<Weights>(plan::few_outputs);
  dynamic_shared shared;
  const auto weights = shared.take<std::uint8_t>(many_stages * weight_bytes, "weights");
  const auto rows = shared.take<std::uint8_t>(many_stages * row_bytes, "rows");
  const warp_place block{block_index().x * plan::many_outputs, block_index().y * plan::many_rows};
  const warp_place at{block.output + warp_index() * plan::few_outputs, block.row};
  chunk_walk ahead(in.order), now(in.order);
  const auto bring = [&](unsigned stage) {
    if (!ahead.done()) {
      bring_tile<Weights, plan::many_outputs>(weights.part(stage * weight_bytes, weight_bytes),
                                              {in.weight, block.output, ahead.first(), ahead.end()},
                                              thread_index(), many_threads);
      bring_tile<Rows, plan::many_rows>(rows.part(stage * row_bytes, row_bytes),
                                        {in.rows, block.row, ahead.first(), ahead.end()},
                                        thread_index(), many_threads);
      ahead.advance();
    }
    commit_copies();
  };
  for (unsigned i = 0; i + 1 < many_stages; ++i) bring(i);
  many_sums sums;
  for (unsigned stage = 0; !now.done(); stage = (stage + 1) % many_stages) {
    wait_copies<many_stages - 2>();
    sync_block();  // the chunk is there, and that before it is no longer read
    bring((stage + many_stages - 1) % many_stages);
    add_chunk<Weights, Rows, many_tiles>(
        sums.slice, weights.part(stage * weight_bytes + warp_index() * warp_bytes, warp_bytes),
        rows.part(stage * row_bytes, row_bytes), in, at, now.first(), now.end());
    if (now.ends_slice()) sums.close_slice(now.ends_segment());
    now.advance();
  }
  for (unsigned t = 0; t < many_tiles; ++t)
    for (unsigned i = 0; i < 4; ++i)
      out.store(at.row + 8 * t + fragment_row(i), at.output + fragment_output(i),
                sums.ordered[t][i].total);
}

}  // namespace cedar::kernels::cuda
