// The parts of attention that every layer computes for itself: query, window entry, output.
//
// Source: DeepSeek-V4.1-Flash reference code. RoPE acts on the last rope_dim of each head with the
// frequencies of the layer's ratio; queries have no norm per head; the output is rotated backwards
// by the query's own position, because the shared key = value latent carries its rotation.
#pragma once

#include "runtime/model/context.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::model {

struct projected_query {
  kernels::matrix_view<kernels::bf16>
      compressed;  ///< [n, q_rank], normalised; feeds the indexer too
  kernels::matrix_view<kernels::bf16> q;  ///< [n, H*hd], rotated
};

/// What queries and window entries are made of, before their norms.
struct projected_input {
  kernels::matrix_view<kernels::bf16> query;  ///< [n, q_rank]
  kernels::matrix_view<kernels::bf16> latent;  ///< [n, hd]
};

/// `x`: the sublayer's input, quantised.
projected_input project_input(const context& c, const attention_weights& weights,
                              const quantized_rows& x);

/// `bottleneck` [n, q_rank]: projected_input's query.
projected_query project_query(const context& c, const attention_weights& weights,
                              kernels::matrix_view<const kernels::bf16> bottleneck,
                              std::uint32_t ratio);

/// The rows' own window entries, packed: [n, entry_bytes(fp8_e8m0_32, hd)]. `latent` [n, hd]:
/// projected_input's.
kernels::matrix_view<std::byte> make_window_entries(
    const context& c, const attention_weights& weights,
    kernels::matrix_view<const kernels::bf16> latent, std::uint32_t ratio);

/// The same of rows that have no query. `x` as project_input() takes it.
kernels::matrix_view<std::byte> make_window_entries(const context& c,
                                                    const attention_weights& weights,
                                                    const quantized_rows& x, std::uint32_t ratio);

/// Attention over the given entries, inverse rotation, grouped low-rank output projection: [n, d].
kernels::matrix_view<kernels::bf16> attend(const context& c, std::uint32_t layer,
                                           const attention_weights& weights,
                                           const projected_query& query,
                                           std::span<const kernels::attention_entries> entries,
                                           std::uint32_t ratio);

}  // namespace cedar::model
