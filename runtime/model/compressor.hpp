// Creation of global KV: an owner layer compresses r tokens into one entry and one index key.
//
// Source: DeepSeek-V4.1-Flash reference code. Ratio 1: latent = RMSNorm(Wkv x), all bf16. Ratio >=
// 2: k = Wkv x and g = Wgate x in fp32; z = sum over the group's tokens of k * softmax(g) per
// channel; latent = RMSNorm(bf16(z)). The index key comes from the latent before rotation and
// packing; the entry is the latent rotated at its group's first position, packed to FP4.
#pragma once

#include "runtime/model/context.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::model {

inline constexpr kernels::entry_format window_entry_format = kernels::entry_format::fp8_e8m0_32;
inline constexpr kernels::entry_format global_entry_format = kernels::entry_format::fp4_e4m3_16;
inline constexpr kernels::entry_format index_entry_format = kernels::entry_format::fp4_e8m0_32;

/// What each row contributes to its group (ratio >= 2), fp32.
struct compressor_inputs {
  kernels::matrix_view<float> values;  ///< [n, hd]
  kernels::matrix_view<float> gates;  ///< [n, hd]
};

/// `x`: the sublayer's input [n, d].
compressor_inputs project_compressor(const context& c, const compressor_weights& weights,
                                     kernels::matrix_view<const kernels::bf16> x);

/// Latents of complete groups. `members` [g*r, hd]: the groups' tokens in order.
kernels::matrix_view<kernels::bf16> pool_groups(const context& c, const compressor_weights& weights,
                                                const compressor_inputs& members,
                                                std::uint32_t ratio);

/// Latents at ratio 1: one per row.
kernels::matrix_view<kernels::bf16> latents_of_rows(const context& c,
                                                    const compressor_weights& weights,
                                                    kernels::matrix_view<const kernels::bf16> x);

/// Packed entries of g groups.
struct global_entries {
  kernels::matrix_view<std::byte> main;  ///< [g, entry_bytes(global_entry_format, hd)]
  kernels::matrix_view<std::byte> index_keys;  ///< [g, entry_bytes(index_entry_format, ihd)]
};

/// `first_positions` [g]: position of each group's first token (j * ratio).
global_entries make_global_entries(const context& c, std::uint32_t layer,
                                   const indexer_weights& indexer,
                                   kernels::matrix_view<const kernels::bf16> latents,
                                   std::span<const std::int32_t> first_positions);

}  // namespace cedar::model
