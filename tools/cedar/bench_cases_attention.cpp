// Cache entries and what reads them: packing, attention, index scores, choices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/ops/selection.hpp"
#include "tools/cedar/bench_kernel_case.hpp"

namespace cedar::tools {

using kernels::bf16;
using kernels::entry_format;
using kernels::matrix_view;

namespace {

/// `count` entries, of which some thousands differ.
matrix_view<std::byte> packed(bench_memory& memory, const kernels::backend& backend,
                              entry_format format, std::size_t width, std::size_t count) {
  const std::size_t bytes = kernels::entry_bytes(format, width);
  const std::size_t different = std::min<std::size_t>(count, 4099);
  const auto out = memory.zeros<std::byte>(count, bytes);
  backend.pack_entries({memory.numbers(different, width), out.rows_from(0, different), format});
  for (std::size_t first = different; first < count; first += different)
    std::memcpy(out.row_data(first), out.data, std::min(different, count - first) * bytes);
  return out;
}

/// `count` of them, far from each other.
matrix_view<const std::byte*> scattered(bench_memory& memory, matrix_view<const std::byte> entries,
                                        std::size_t count) {
  const auto out = memory.zeros<const std::byte*>(1, count);
  for (std::size_t i = 0; i < count; ++i) out.data[i] = entries.row_data(i * entries.rows / count);
  return out;
}

kernel_case attention_case(const model::model_config& c, std::size_t n, std::size_t selected) {
  return {"attention",
          fmt::format("{} heads x {}, {} + {} entries, {}", c.heads, c.head_dim, c.window, selected,
                      rows_text(n)),
          [=](bench_memory& memory, const kernels::backend& backend) -> kernel_call {
            const auto window =
                packed(memory, backend, entry_format::fp8_e8m0_32, c.head_dim, c.window);
            const auto global = packed(memory, backend, entry_format::fp4_e4m3_16, c.head_dim,
                                       std::max<std::size_t>(64 * selected, 1));
            const auto lists = memory.zeros<kernels::attention_entries>(1, n);
            for (std::size_t row = 0; row < n; ++row)
              lists.data[row] = {
                  scattered(memory, window, c.window).row(0),
                  scattered(memory, global.rows_from(0, global.rows - row % global.rows), selected)
                      .row(0)};
            const std::size_t width = std::size_t{c.heads} * c.head_dim;
            const matrix_view<const bf16> q = memory.numbers(n, width);
            const auto o = memory.zeros<bf16>(n, width);
            const auto sinks = memory.zeros<float>(1, c.heads);
            const double entries = as_bytes(n * (c.window * window.cols + selected * global.cols));
            return {entries + as_bytes(4 * n * width),
                    4.0 * static_cast<double>(n * (c.window + selected) * width), false,
                    [=](const kernels::backend& with) {
                      with.attention({o, q, lists.row(0), sinks.row(0), c.head_dim,
                                      static_cast<float>(1.0 / std::sqrt(c.head_dim))});
                    }};
          }};
}

/// Keys that follow each other, as in a page of the cache.
constexpr std::size_t keys_of_page = 64;

/// Keys, and the query of a row.
struct index_inputs {
  matrix_view<const std::byte*> pages;
  matrix_view<std::byte> query;
  matrix_view<bf16> weights;
  matrix_view<bf16> scores;

  void score(const kernels::backend& backend, std::size_t width) const {
    backend.index_scores({scores.row(0), query, weights.row(0), pages.row(0), width, keys_of_page});
  }
};

index_inputs make_index(bench_memory& memory, const kernels::backend& backend,
                        const model::model_config& c, std::size_t keys) {
  const auto entries = packed(memory, backend, entry_format::fp4_e8m0_32, c.index_head_dim, keys);
  const std::size_t pages = (keys + keys_of_page - 1) / keys_of_page;
  const auto firsts = memory.zeros<const std::byte*>(1, pages);
  for (std::size_t i = 0; i < pages; ++i) firsts.data[i] = entries.row_data(i * keys_of_page);
  return {firsts,
          packed(memory, backend, entry_format::fp4_e8m0_32, c.index_head_dim, c.index_heads),
          memory.numbers(1, c.index_heads), memory.zeros<bf16>(1, keys)};
}

kernel_case scores_case(const model::model_config& c, std::size_t keys) {
  return {
      "index_scores", fmt::format("{} heads x {}, {} keys", c.index_heads, c.index_head_dim, keys),
      [=](bench_memory& memory, const kernels::backend& backend) -> kernel_call {
        const index_inputs in = make_index(memory, backend, c, keys);
        const std::size_t bytes = kernels::entry_bytes(entry_format::fp4_e8m0_32, c.index_head_dim);
        return {as_bytes(keys * (bytes + 2)),
                2.0 * static_cast<double>(keys * c.index_heads * c.index_head_dim), false,
                [=](const kernels::backend& with) { in.score(with, c.index_head_dim); }};
      }};
}

/// A choice among the scores of `keys` keys.
template <class Choose>
kernel_case choice_case(const char* name, const model::model_config& c, std::size_t keys,
                        std::string shape, Choose choose) {
  return {name, std::move(shape),
          [=](bench_memory& memory, const kernels::backend& backend) -> kernel_call {
            const index_inputs in = make_index(memory, backend, c, keys);
            in.score(backend, c.index_head_dim);
            return {as_bytes(2 * keys), 0, false,
                    [=, scores = std::span<const bf16>(in.scores.row(0))](
                        const kernels::backend&) mutable { choose(scores); }};
          }};
}

void add_choices(std::vector<kernel_case>& to, const model::model_config& c, std::size_t keys) {
  to.push_back(choice_case(
      "select_top_k", c, keys, fmt::format("{} of {} keys", c.index_topk, keys),
      [k = c.index_topk, out = std::vector<std::uint32_t>()](std::span<const bf16> scores) mutable {
        kernels::select_top_k(scores, k, out);
      }));
  to.push_back(choice_case(
      "select_candidates", c, keys,
      fmt::format("{} blocks of {} of {} keys", c.candidate_blocks, c.candidate_block_size, keys),
      [size = c.candidate_block_size, count = c.candidate_blocks,
       out = kernels::candidate_pool()](std::span<const bf16> scores) mutable {
        kernels::select_candidates(scores, size, count, out);
      }));
}

kernel_case pack_case(entry_format format, const char* name, std::size_t width, std::size_t n,
                      bool unpack) {
  return {unpack ? "unpack_entries" : "pack_entries",
          fmt::format("{} {}, {}", name, width, rows_text(n)),
          [=](bench_memory& memory, const kernels::backend& backend) -> kernel_call {
            const std::size_t bytes = kernels::entry_bytes(format, width);
            const auto entries = packed(memory, backend, format, width, n);
            const auto x = memory.numbers(n, width);
            return {as_bytes(n * (2 * width + bytes)), 0, false, [=](const kernels::backend& with) {
                      if (unpack)
                        with.unpack_entries({entries, x, format});
                      else
                        with.pack_entries({x, entries, format});
                    }};
          }};
}

/// What becomes a row's entry of the window.
kernel_case norm_entries_case(const model::model_config& c, std::size_t n) {
  return {"rms_norm_entries", fmt::format("FP8 {}, {}", c.head_dim, rows_text(n)),
          [=](bench_memory& memory, const kernels::backend&) -> kernel_call {
            constexpr entry_format format = entry_format::fp8_e8m0_32;
            const matrix_view<const bf16> x = memory.numbers(n, c.head_dim);
            const auto weight = memory.numbers(1, c.head_dim);
            const auto y = memory.zeros<bf16>(n, c.head_dim);
            const auto entries =
                memory.zeros<std::byte>(n, kernels::entry_bytes(format, c.head_dim));
            const auto positions = memory.zeros<std::int32_t>(1, n);
            const auto frequencies = memory.filled<float>(1, c.rope_dim / 2, 0.5F);
            return {as_bytes(n * (2 * c.head_dim + entries.cols) + 2 * c.head_dim), 0, false,
                    [=](const kernels::backend& with) {
                      with.rms_norm_entries({{y, x, weight.row(0), 1e-6F},
                                             positions.row(0),
                                             frequencies.row(0),
                                             entries,
                                             format});
                    }};
          }};
}

/// What Engram's rows go through between table and projection.
kernel_case requantize_case(std::size_t width, std::size_t n) {
  return {"requantize_entries", fmt::format("FP8 {}, {}", width, rows_text(n)),
          [=](bench_memory& memory, const kernels::backend& backend) -> kernel_call {
            const auto entries = packed(memory, backend, entry_format::fp8_e8m0_32, width, n);
            const auto codes = memory.zeros<std::uint8_t>(n, width);
            const auto scales = memory.zeros<std::uint8_t>(n, width / 32);
            return {as_bytes(2 * n * (width + width / 32)), 0, false,
                    [=](const kernels::backend& with) {
                      with.requantize_entries({entries, codes, scales});
                    }};
          }};
}

}  // namespace

void add_attention_cases(std::vector<kernel_case>& to, const model::model_config& c,
                         const case_sizes& sizes) {
  for (const std::size_t n : sizes.rows) {
    if (n > 64) continue;  // a row costs the same among more
    to.push_back(attention_case(c, n, 0));
    to.push_back(attention_case(c, n, c.index_topk));
    to.push_back(norm_entries_case(c, n));
  }
  for (const std::size_t keys : sizes.entries) {
    to.push_back(scores_case(c, keys));
    add_choices(to, c, keys);
  }
  const std::size_t most = *std::ranges::max_element(sizes.rows);
  for (const bool unpack : {false, true}) {
    to.push_back(pack_case(entry_format::fp8_e8m0_32, "FP8", c.head_dim, most, unpack));
    to.push_back(pack_case(entry_format::fp4_e4m3_16, "FP4", c.head_dim, most, unpack));
    to.push_back(pack_case(entry_format::fp4_e8m0_32, "FP4 key", c.index_head_dim, most, unpack));
  }
  if (!c.engram.layers.empty()) to.push_back(requantize_case(c.engram.head_dim, most));
}

}  // namespace cedar::tools
