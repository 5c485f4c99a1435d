#include "tools/cedar/operation_bytes.hpp"

#include <span>

namespace cedar::tools {

using namespace kernels;

namespace {

template <class T>
std::size_t of(matrix_view<T> view) {
  return view.rows * view.cols * sizeof(T);
}
template <class T>
std::size_t of(std::span<T> values) {
  return values.size_bytes();
}
std::size_t of(const fp8_rows_view& rows) {
  return of(rows.codes) + of(rows.scales);
}
std::size_t of(const fp8_weight_view& weight) {
  return of(weight.codes) + of(weight.scales);
}
std::size_t of(const fp4_weight_view& weight) {
  return of(weight.codes) + of(weight.scales);
}

/// Of the rotated part of each head, read and written.
std::size_t rotated(std::size_t rows, std::size_t cols, std::size_t head_dim, std::size_t pairs) {
  return 2 * sizeof(bf16) * rows * (cols / head_dim) * 2 * pairs;
}

}  // namespace

std::size_t bytes_of(const rms_norm_arguments& a) {
  return of(a.y) + of(a.x) + of(a.weight);
}
std::size_t bytes_of(const quantize_fp8_arguments& a) {
  return of(a.x) + of(a.codes) + of(a.scales);
}
std::size_t bytes_of(const rms_norm_quantize_arguments& a) {
  return bytes_of(a.norm) + of(a.codes) + of(a.scales);
}
std::size_t bytes_of(const linear_fp8_arguments& a) {
  return of(a.y) + of(a.x) + of(a.weight);
}
std::size_t bytes_of(const linear_fp4_arguments& a) {
  return of(a.y) + of(a.x) + of(a.weight);
}
std::size_t bytes_of(const linear_fp8_weight_only_arguments& a) {
  return of(a.y) + of(a.x) + of(a.weight);
}
std::size_t bytes_of(const linear_bf16_arguments& a) {
  return of(a.y) + of(a.x) + of(a.weight) + of(a.bias);
}
std::size_t bytes_of(const linear_f32_arguments& a) {
  return of(a.y) + of(a.x) + of(a.weight);
}

namespace {

template <class Product>
std::size_t bytes_of_all(std::span<const Product> products) {
  std::size_t out = 0;
  for (const Product& product : products) out += bytes_of(product);
  return out;
}

}  // namespace

std::size_t bytes_of(const grouped_linear_fp8_arguments& a) {
  return bytes_of_all(a.products);
}
std::size_t bytes_of(const grouped_linear_fp4_arguments& a) {
  return bytes_of_all(a.products);
}
std::size_t bytes_of(const grouped_linear_fp8_weight_only_arguments& a) {
  return bytes_of_all(a.products);
}
std::size_t bytes_of(const hc_coefficients_arguments& a) {
  return of(a.streams) + of(a.fn) + of(a.pre) + of(a.post) + of(a.combine);
}
std::size_t bytes_of(const hc_collapse_arguments& a) {
  return of(a.y) + of(a.streams) + of(a.pre);
}
std::size_t bytes_of(const hc_expand_arguments& a) {
  return of(a.out) + of(a.streams) + of(a.y) + of(a.post) + of(a.combine);
}
std::size_t bytes_of(const hc_transition_arguments& a) {
  return bytes_of(a.expand) + of(a.pre) + of(a.norm) + of(a.x) + of(a.codes) + of(a.scales) +
         of(a.fn) + of(a.next_pre) + of(a.next_post) + of(a.next_combine);
}
std::size_t bytes_of(const rope_arguments& a) {
  return rotated(a.x.rows, a.x.cols, a.head_dim, a.frequencies.size());
}
std::size_t bytes_of(const pack_entries_arguments& a) {
  return of(a.x) + of(a.entries);
}
std::size_t bytes_of(const rms_norm_entries_arguments& a) {
  return of(a.norm.x) + of(a.norm.weight) + of(a.entries);
}
std::size_t bytes_of(const unpack_entries_arguments& a) {
  return of(a.entries) + of(a.x);
}
std::size_t bytes_of(const requantize_entries_arguments& a) {
  return of(a.entries) + of(a.codes) + of(a.scales);
}
std::size_t bytes_of(const compressor_pool_arguments& a) {
  return of(a.z) + of(a.values) + of(a.gates);
}
std::size_t bytes_of(const index_scores_arguments& a) {
  return of(a.scores) + of(a.query) +
         a.scores.size() * entry_bytes(entry_format::fp4_e8m0_32, a.head_dim);
}
std::size_t bytes_of(const attention_arguments& a) {
  std::size_t out = of(a.o) + of(a.q);
  for (const attention_entries& row : a.entries)
    out += row.window.size() * entry_bytes(a.window_format, a.head_dim) +
           row.selected.size() * entry_bytes(a.selected_format, a.head_dim);
  return out;
}
std::size_t bytes_of(const gate_scores_arguments& a) {
  return 2 * of(a.scores);
}
std::size_t bytes_of(const swiglu_arguments& a) {
  return of(a.y) + of(a.gate) + of(a.up);
}
std::size_t bytes_of(const swiglu_quantize_arguments& a) {
  return of(a.codes) + of(a.scales) + of(a.gate) + of(a.up);
}
std::size_t bytes_of(const moe_combine_arguments& a) {
  return of(a.y) + a.parts.size() * a.y.cols * sizeof(bf16);
}
std::size_t bytes_of(const engram_gate_arguments& a) {
  return of(a.out) + of(a.streams) + of(a.key_values) + of(a.q_weight) + of(a.k_weight);
}
std::size_t bytes_of(const rope_2d_arguments& a) {
  return rotated(a.x.rows, a.x.cols, a.head_dim, 2 * a.frequencies.size());
}
std::size_t bytes_of(const full_attention_arguments& a) {
  return of(a.o) + of(a.q) + of(a.k) + of(a.v);
}
std::size_t bytes_of(const gelu_arguments& a) {
  return of(a.y) + of(a.x);
}
std::size_t bytes_of(const add_arguments& a) {
  return of(a.y) + of(a.a) + of(a.b);
}

}  // namespace cedar::tools
