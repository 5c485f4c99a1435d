// The weights of one layer, as views into mapped checkpoint bytes.
//
// Names follow the checkpoint (`layers.{i}.attn.wq_a` is attention_weights::wq_a). A view is valid
// while the weight_set it came from (runtime/stage) lives. Nothing here is converted: bytes on disk
// are bytes in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/ops/arguments.hpp"

namespace cedar::model {

using kernels::bf16;
using kernels::matrix_view;

/// mHC coefficients of one sublayer: fn [(2+s)*s, s*d], base [(2+s)*s], scale [3].
struct hyper_connection_weights {
  matrix_view<const float> fn;
  std::span<const float> base;
  std::span<const float> scale;
};

/// Only in layers that create global KV.
struct compressor_weights {
  matrix_view<const bf16> wkv;  ///< [hd, d]
  std::optional<matrix_view<const bf16>> wgate;  ///< [hd, d], ratio >= 2
  std::span<const bf16> norm;  ///< [hd]
};

/// Only in layers that select; wk and k_norm only where the layer also creates index keys.
struct indexer_weights {
  kernels::fp8_weight_view wq_b;  ///< [ih * ihd, q_rank]
  matrix_view<const bf16> weights_proj;  ///< [ih, d]
  std::optional<matrix_view<const bf16>> wk;  ///< [ihd, hd]
  std::span<const bf16> k_norm;  ///< [ihd]
};

struct attention_weights {
  hyper_connection_weights hc;
  std::span<const bf16> norm;  ///< [d], attn_norm
  std::span<const float> sinks;  ///< [H]
  kernels::fp8_weight_view wq_a;  ///< [q_rank, d]
  std::span<const bf16> q_norm;  ///< [q_rank]
  kernels::fp8_weight_view wq_b;  ///< [H * hd, q_rank]
  kernels::fp8_weight_view wkv;  ///< [hd, d]
  std::span<const bf16> kv_norm;  ///< [hd]
  kernels::fp8_weight_view wo_a;  ///< [groups * rank, H * hd / groups], used with bf16 activations
  kernels::fp8_weight_view wo_b;  ///< [d, groups * rank]
  std::optional<compressor_weights> compressor;
  std::optional<indexer_weights> indexer;
};

struct expert_weights {
  kernels::fp4_weight_view w1;  ///< [inner, d], gate half
  kernels::fp4_weight_view w2;  ///< [d, inner]
  kernels::fp4_weight_view w3;  ///< [inner, d], up half

  /// False: the expert is placed elsewhere, and its views are empty.
  bool present() const noexcept { return w1.codes.rows > 0; }
};

struct shared_expert_weights {
  kernels::fp8_weight_view w1;
  kernels::fp8_weight_view w2;
  kernels::fp8_weight_view w3;
};

struct moe_weights {
  hyper_connection_weights hc;
  std::span<const bf16> norm;  ///< [d], ffn_norm
  matrix_view<const bf16> gate;  ///< [E, d]
  std::span<const float> bias;  ///< [E], selection only
  std::span<const float> bias_vl;  ///< [E], selection of image rows
  std::vector<expert_weights> experts;  ///< [E]
  std::uint32_t experts_per_token = 0;  ///< k
  shared_expert_weights shared;
};

/// The part of an Engram module that sits with its layer (the table is a unit of its own).
struct engram_weights {
  kernels::fp8_weight_view wkv;  ///< [(s+1) * d, columns * head_dim]
  matrix_view<const bf16> q_weight;  ///< [s, d]
  matrix_view<const bf16> k_weight;  ///< [s, d]
};

struct layer_weights {
  attention_weights attention;
  moe_weights moe;
  std::optional<engram_weights> engram;
};

/// The table of one Engram module: row = codes [head_dim] E4M3, scales [head_dim / 32] E8M0.
struct engram_table_weights {
  matrix_view<const std::uint8_t> codes;
  matrix_view<const std::uint8_t> scales;
};

struct head_weights {
  std::span<const bf16> norm;  ///< [d]
  matrix_view<const bf16> head;  ///< [vocabulary, d]
};

/// The drafter (DSpark): everything it reads, so that it can be placed apart from the backbone.
struct drafter_weights {
  matrix_view<const bf16> embedding;  ///< [vocabulary, d], the backbone's
  matrix_view<const bf16> head;  ///< [vocabulary, d], the backbone's
  kernels::fp8_weight_view main_proj;  ///< [d, taps * d]
  std::span<const bf16> main_norm;  ///< [d]
  std::vector<layer_weights> blocks;  ///< window layers without Engram
  std::span<const bf16> norm;  ///< [d], before the head
  matrix_view<const bf16> markov_embedding;  ///< [vocabulary, rank]
  matrix_view<const bf16> markov_head;  ///< [vocabulary, rank]
  matrix_view<const bf16> confidence;  ///< [1, d + rank]
};

}  // namespace cedar::model
