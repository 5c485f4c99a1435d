// Index queries of the layers that select: which global entries a row will attend to.
//
// Source: DeepSeek-V4.1-Flash reference code. Q = wq_b * c (c: the layer's normalised query
// bottleneck), rotated at the row's position, packed to FP4; head weights w =
// bf16(bf16(weights_proj * x) * (ihd^-1/2 * ih^-1/2)). No Hadamard transform, no norm on the query.
#pragma once

#include "runtime/model/context.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::model {

struct index_query {
  kernels::matrix_view<std::byte> packed;  ///< [n * ih, entry_bytes(index_entry_format, ihd)]
  kernels::matrix_view<kernels::bf16> weights;  ///< [n, ih]
};

/// `x` [n, d]: the sublayer's input; `compressed` [n, q_rank]: the normalised query bottleneck.
index_query make_index_query(const context& c, std::uint32_t layer, const indexer_weights& indexer,
                             kernels::matrix_view<const kernels::bf16> x,
                             kernels::matrix_view<const kernels::bf16> compressed);

/// Packed index keys in runs of `run` consecutive ones; the last may be shorter.
struct index_keys {
  std::span<const std::byte* const> runs;
  std::size_t run = 1;
};

/// Scores of one row against as many keys as `scores` has elements.
void score_row(const context& c, const index_query& query, std::size_t row, const index_keys& keys,
               std::span<kernels::bf16> scores);

}  // namespace cedar::model
