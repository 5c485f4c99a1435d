// Arguments of every kernel: what goes in, what comes out, and the shapes that must hold.
//
// Vocabulary of shapes: n rows (one row = one position of one request in one step), d model width,
// k input width, o output width, H heads, hd head width, s residual streams, E experts.
// All views are valid for the duration of the call. Outputs may not overlap inputs unless the
// argument says "in place". Rows never influence each other: a row's result has the same bits in any
// batch. Shape errors are defects, checked once for all backends in validate.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/dtype.hpp"
#include "kernels/base/matrix_view.hpp"
#include "kernels/ops/entry_format.hpp"

namespace cedar::kernels {

// ---- weights, exactly as they lie in the checkpoint ------------------------------------------------

/// FP8 matrix [o, k]: E4M3 codes and one E8M0 scale per 32x32 block, scales [ceil(o/32), k/32].
struct fp8_weight_view {
  matrix_view<const std::uint8_t> codes;
  matrix_view<const std::uint8_t> scales;
};

/// FP4 matrix [o, k]: E2M1 codes packed two a byte [o, k/2], E8M0 scales per row and 32 columns
/// [o, k/32].
struct fp4_weight_view {
  matrix_view<const std::uint8_t> codes;
  matrix_view<const std::uint8_t> scales;
};

/// Activations quantised to FP8: E4M3 codes [n, k], E8M0 scales [n, k/32].
struct fp8_rows_view {
  matrix_view<const std::uint8_t> codes;
  matrix_view<const std::uint8_t> scales;
};

// ---- norms and linear layers -----------------------------------------------------------------------

/// y = bf16(w * (x * (mean(x^2) + epsilon)^-1/2)), statistics and product in fp32.
struct rms_norm_arguments {
  matrix_view<bf16> y;         ///< [n, d]; may be the same memory as x
  matrix_view<const bf16> x;   ///< [n, d]
  std::span<const bf16> weight;  ///< [d]
  float epsilon = 0;
};

/// Dynamic activation quantisation, groups of 32 along a row (entry_format::fp8_e8m0_32's rule).
struct quantize_fp8_arguments {
  matrix_view<const bf16> x;          ///< [n, k], k a multiple of 32
  matrix_view<std::uint8_t> codes;    ///< [n, k]
  matrix_view<std::uint8_t> scales;   ///< [n, k/32]
};

/// rms_norm and quantize_fp8 of its result in one pass, with the bits of the two.
struct rms_norm_quantize_arguments {
  rms_norm_arguments norm;           ///< y [n, d], d a multiple of 32
  matrix_view<std::uint8_t> codes;   ///< [n, d]
  matrix_view<std::uint8_t> scales;  ///< [n, d/32]
};

/// y = bf16(x * W^T) with quantised activations; fp32 accumulation in the canonical order.
/// `segments` is 1, or 4 for a matrix that may be split by columns (k/segments a multiple of 32).
struct linear_fp8_arguments {
  matrix_view<bf16> y;  ///< [n, o]
  fp8_rows_view x;      ///< [n, k]
  fp8_weight_view weight;
  std::size_t segments = 1;
};

struct linear_fp4_arguments {
  matrix_view<bf16> y;  ///< [n, o]
  fp8_rows_view x;      ///< [n, k]
  fp4_weight_view weight;
  std::size_t segments = 1;
};

/// y = bf16(x * W^T), FP8 weights but *unquantised* bf16 activations (the output projection wo_a).
struct linear_fp8_weight_only_arguments {
  matrix_view<bf16> y;        ///< [n, o]
  matrix_view<const bf16> x;  ///< [n, k]
  fp8_weight_view weight;
};

/// y = bf16(x * W^T + b), all bf16; the bias is added to the fp32 sum, then rounded once.
struct linear_bf16_arguments {
  matrix_view<bf16> y;             ///< [n, o]
  matrix_view<const bf16> x;       ///< [n, k]
  matrix_view<const bf16> weight;  ///< [o, k]
  std::span<const bf16> bias = {};  ///< [o], or empty: none
};

/// y = x * W^T in fp32 with bf16 inputs widened (gate, ratio >= 2 compressor, head).
struct linear_f32_arguments {
  matrix_view<float> y;            ///< [n, o]
  matrix_view<const bf16> x;       ///< [n, k]
  matrix_view<const bf16> weight;  ///< [o, k]
};

/// Products that do not need each other, in any order or side by side: experts, projections of the same
/// rows. Each has the bits of its own operation; one without rows is nothing to do. Their outputs may
/// not overlap.
template <class Product>
struct grouped_arguments {
  std::span<const Product> products;
};
using grouped_linear_fp8_arguments = grouped_arguments<linear_fp8_arguments>;
using grouped_linear_fp4_arguments = grouped_arguments<linear_fp4_arguments>;
using grouped_linear_fp8_weight_only_arguments = grouped_arguments<linear_fp8_weight_only_arguments>;

// ---- residual streams (single-pass mHC) --------------------------------------------------------------

/// Coefficients of one sublayer from its incoming streams. With x = the s streams of a row side by
/// side and r = (mean(x^2) + rms_epsilon)^-1/2:  m = (x * fn^T) * r,
///   pre  = sigmoid(m[0..s) * scale[0] + base) + epsilon
///   post = 2 * sigmoid(m[s..2s) * scale[1] + base)
///   C    = Sinkhorn(m[2s..) * scale[2] + base): softmax of each row + epsilon, divide by (column
///          sum + epsilon); then iterations-1 times: divide by (row sum + epsilon), then by (column
///          sum + epsilon).
struct hc_coefficients_arguments {
  matrix_view<const bf16> streams;  ///< [n, s*d]
  matrix_view<const float> fn;      ///< [(2+s)*s, s*d]
  std::span<const float> base;      ///< [(2+s)*s]
  std::span<const float> scale;     ///< [3]
  std::size_t iterations = 0;
  float epsilon = 0;
  float rms_epsilon = 0;
  matrix_view<float> pre;           ///< [n, s]
  matrix_view<float> post;          ///< [n, s]
  matrix_view<float> combine;       ///< [n, s*s], row-major [old stream, new stream]
};

/// y = bf16(sum_i pre_i * X_i), i ascending.
struct hc_collapse_arguments {
  matrix_view<bf16> y;              ///< [n, d]
  matrix_view<const bf16> streams;  ///< [n, s*d]
  matrix_view<const float> pre;     ///< [n, s]
};

/// X'_k = bf16(post_k * y + sum_i C[i,k] * X_i), i ascending.
struct hc_expand_arguments {
  matrix_view<bf16> out;            ///< [n, s*d]; may be the same memory as streams
  matrix_view<const bf16> streams;  ///< [n, s*d]
  matrix_view<const bf16> y;        ///< [n, d]
  matrix_view<const float> post;    ///< [n, s]
  matrix_view<const float> combine; ///< [n, s*s]
};

/// From one sublayer to the next, in one pass over the streams (single-pass mHC): hc_expand of the
/// sublayer that ends; of the new streams hc_collapse with the `pre` that is known by then,
/// rms_norm_quantize of what it gives, and hc_coefficients of the sublayer that begins. Bits of these
/// operations, in any number of rows. Memory traffic of a row's activations: d + s*d elements of y and
/// old streams read, s*d + d of new streams and x written, (2s + 2)*d in all.
struct hc_transition_arguments {
  hc_expand_arguments expand;        ///< out: the new streams [n, s*d], d a multiple of 32
  matrix_view<const float> pre;      ///< [n, s]; no memory that the call writes
  std::span<const bf16> norm;        ///< [d]
  float rms_epsilon = 0;             ///< of the norm and of the coefficients
  matrix_view<bf16> x;               ///< [n, d]: collapsed and normalised
  matrix_view<std::uint8_t> codes;   ///< [n, d]: x quantised
  matrix_view<std::uint8_t> scales;  ///< [n, d/32]
  matrix_view<const float> fn;       ///< [(2+s)*s, s*d]; from here on as in hc_coefficients
  std::span<const float> base;       ///< [(2+s)*s]
  std::span<const float> scale;      ///< [3]
  std::size_t iterations = 0;
  float epsilon = 0;
  matrix_view<float> next_pre;       ///< [n, s]
  matrix_view<float> next_post;      ///< [n, s]
  matrix_view<float> next_combine;   ///< [n, s*s]

  /// The operations that it is made of, in this order after `expand`; the collapsed rows lie in x
  /// until they are normalised in place.
  hc_collapse_arguments collapse_part() const;
  rms_norm_quantize_arguments norm_part() const;
  hc_coefficients_arguments coefficients_part() const;
};

// ---- rotary positions and cache entries ------------------------------------------------------------

/// Rotates, in place, the last rope_dim elements of each head: pairs (2i, 2i+1) by the fp32 angle
/// position * frequencies[i] (product rounded to fp32, then accurate cosine and sine of it), multiply
/// in fp32, round to bf16. `inverse` rotates backwards.
struct rope_arguments {
  matrix_view<bf16> x;                      ///< [n, heads * head_dim], in place
  std::size_t head_dim = 0;
  std::span<const std::int32_t> positions;  ///< [n]
  std::span<const float> frequencies;       ///< [rope_dim / 2]
  bool inverse = false;
};

/// Packs each row of x into one entry.
struct pack_entries_arguments {
  matrix_view<const bf16> x;       ///< [n, w]
  matrix_view<std::byte> entries;  ///< [n, entry_bytes(format, w)]
  entry_format format = entry_format::bf16;
};

/// rms_norm, rope of the result as one head, and pack_entries of that in one pass, with the bits of
/// the three.
struct rms_norm_entries_arguments {
  rms_norm_arguments norm;                  ///< y [n, w]: normalised and rotated, what is packed
  std::span<const std::int32_t> positions;  ///< [n]
  std::span<const float> frequencies;       ///< [rope_dim / 2]
  matrix_view<std::byte> entries;           ///< [n, entry_bytes(format, w)]
  entry_format format = entry_format::bf16;

  /// The operations that follow `norm`, in this order.
  rope_arguments rope_part() const;
  pack_entries_arguments pack_part() const;
};

/// Dequantises entries to bf16 (exact).
struct unpack_entries_arguments {
  matrix_view<const std::byte> entries;  ///< [n, entry_bytes(format, w)]
  matrix_view<bf16> x;                   ///< [n, w]
  entry_format format = entry_format::bf16;
};

/// Activations of entries: unpack_entries and quantize_fp8 of its result in one pass, with the bits of
/// the two (Engram's fetched rows, before their projection).
struct requantize_entries_arguments {
  matrix_view<const std::byte> entries;  ///< [n, entry_bytes(fp8_e8m0_32, w)]
  matrix_view<std::uint8_t> codes;       ///< [n, w]
  matrix_view<std::uint8_t> scales;      ///< [n, w/32]
};

/// Pooling of a ratio-r compressor: per group and channel, z = sum_a value_a * softmax_a(gate_a) over
/// the group's r tokens (maximum first, then a ascending), rounded to bf16.
struct compressor_pool_arguments {
  matrix_view<bf16> z;             ///< [g, w]
  matrix_view<const float> values; ///< [g*r, w], tokens of a group in order
  matrix_view<const float> gates;  ///< [g*r, w]
  std::size_t ratio = 0;           ///< r >= 2
};

// ---- indexer -----------------------------------------------------------------------------------------

/// Scores of one row against G = scores.size() index keys:
///   s_j = bf16 sum_h bf16(max(0, bf16(Q_h . k_j)) * w_h)     h ascending, fp32 accumulation
/// Keys lie in runs of `keys_run` consecutive ones (pages of a cache); the last run may be shorter.
struct index_scores_arguments {
  std::span<bf16> scores;                    ///< [G]
  matrix_view<const std::byte> query;        ///< [heads, entry_bytes(fp4_e8m0_32, head_dim)]
  std::span<const bf16> weights;             ///< [heads]
  std::span<const std::byte* const> keys;    ///< [ceil(G / keys_run)] first entries, fp4_e8m0_32
  std::size_t head_dim = 0;
  std::size_t keys_run = 1;
};

// ---- attention -----------------------------------------------------------------------------------------

/// The entries that one query row attends to. Pointers to packed entries; each is key and value at
/// once. Order is the order of summation: window by ascending position, then selected ascending.
struct attention_entries {
  std::span<const std::byte* const> window;
  std::span<const std::byte* const> selected;
};

/// o_h = sum_e bf16(exp(a_e - M)) * kv_e / (sum_e exp(a_e - M) + exp(sink_h - M)), with
/// a_e = (q_h . kv_e) * scale and M = max_e a_e (never below -1e30; the sink takes part in the
/// denominator only). One maximum over all entries first, then one pass. A row without entries gives
/// zeros. Output rounded to bf16.
struct attention_arguments {
  matrix_view<bf16> o;                          ///< [n, H*hd]
  matrix_view<const bf16> q;                    ///< [n, H*hd], rotated
  std::span<const attention_entries> entries;   ///< [n]
  std::span<const float> sinks;                 ///< [H]
  std::size_t head_dim = 0;
  float scale = 0;
  entry_format window_format = entry_format::fp8_e8m0_32;
  entry_format selected_format = entry_format::fp4_e4m3_16;
};

// ---- mixture of experts ------------------------------------------------------------------------------

/// In place: scores <- sqrt(softplus(scores)), softplus(x) = log1p(exp(x)), linear above 20.
struct gate_scores_arguments {
  matrix_view<float> scores;  ///< [n, E]
};

/// y = bf16(w * silu(min(gate, limit)) * clamp(up, -limit, limit)) in fp32; limit 0: no clamps.
/// With `round_silu` the silu is rounded to bf16 before it is multiplied (the vision tower).
struct swiglu_arguments {
  matrix_view<bf16> y;                    ///< [n, i]
  matrix_view<const bf16> gate;           ///< [n, i]
  matrix_view<const bf16> up;             ///< [n, i]
  std::span<const float> route_weights;   ///< [n], or empty: 1
  float limit = 0;
  bool round_silu = false;
};

/// swiglu (without `round_silu`) and quantize_fp8 of its result in one pass, with the bits of the two;
/// the result itself is not stored.
struct swiglu_quantize_arguments {
  matrix_view<std::uint8_t> codes;        ///< [n, i], i a multiple of 32
  matrix_view<std::uint8_t> scales;       ///< [n, i/32]
  matrix_view<const bf16> gate;           ///< [n, i]
  matrix_view<const bf16> up;             ///< [n, i]
  std::span<const float> route_weights;   ///< [n], or empty: 1
  float limit = 0;
};

/// y = bf16(sum of the row's parts), fp32 accumulation in the order given (ascending expert id,
/// shared expert last).
struct moe_combine_arguments {
  matrix_view<bf16> y;                            ///< [n, d]
  std::span<const bf16* const> parts;             ///< [n * parts_per_row], each -> [d]
  std::size_t parts_per_row = 0;
};

// ---- Engram --------------------------------------------------------------------------------------------

/// Per stream k: rho = sum_i X_k q_k w_k key_k * rms(X_k)^-1 * rms(key_k)^-1 * d^-1/2 (epsilon inside
/// the means), gamma = sigmoid(sign(rho) * sqrt(max(|rho|, 1e-6))), 0 for image rows;
/// out_k = bf16(X_k + gamma * v).
struct engram_gate_arguments {
  matrix_view<bf16> out;                     ///< [n, s*d]; may be the same memory as streams
  matrix_view<const bf16> streams;           ///< [n, s*d]
  matrix_view<const bf16> key_values;        ///< [n, (s+1)*d]: s keys, then the value
  matrix_view<const bf16> q_weight;          ///< [s, d]
  matrix_view<const bf16> k_weight;          ///< [s, d]
  std::span<const std::uint8_t> image_rows;  ///< [n], non-zero: gate 0
  float epsilon = 0;
  matrix_view<float> gates;                  ///< [n, s]
};

// ---- vision tower --------------------------------------------------------------------------------------

/// Rotates, in place, whole heads by two positions: pairs (i, i + head_dim/2), the first head_dim/4 of
/// them by rows[n] * frequencies[i], the others by columns[n] * frequencies[i - head_dim/4]. Angles,
/// products and rounding as in rope_arguments.
struct rope_2d_arguments {
  matrix_view<bf16> x;                    ///< [n, heads * head_dim], in place; head_dim % 4 == 0
  std::size_t head_dim = 0;
  std::span<const std::int32_t> rows;     ///< [n]
  std::span<const std::int32_t> columns;  ///< [n]
  std::span<const float> frequencies;     ///< [head_dim / 4]
};

/// Every query attends to every key of its head, without mask or sink: a_e = (q . k_e) * scale,
/// M = max_e a_e, o = sum_e bf16(exp(a_e - M)) * v_e / sum_e exp(a_e - M), e ascending; rounded to bf16.
struct full_attention_arguments {
  matrix_view<bf16> o;        ///< [n, heads * head_dim]
  matrix_view<const bf16> q;  ///< [n, heads * head_dim]
  matrix_view<const bf16> k;  ///< [m, heads * head_dim], m >= 1
  matrix_view<const bf16> v;  ///< [m, heads * head_dim]
  std::size_t head_dim = 0;
  float scale = 0;
};

/// y = bf16(x * Phi(x)), Phi the normal distribution function (GELU in its exact form).
struct gelu_arguments {
  matrix_view<bf16> y;        ///< [n, d]; may be the same memory as x
  matrix_view<const bf16> x;  ///< [n, d]
};

/// y = bf16(a + b).
struct add_arguments {
  matrix_view<bf16> y;        ///< [n, d]; may be the same memory as a or b
  matrix_view<const bf16> a;  ///< [n, d]
  matrix_view<const bf16> b;  ///< [n, d]
};

}  // namespace cedar::kernels
