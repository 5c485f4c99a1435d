// The vision tower's own operations, at a span of its patches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/cedar/bench_kernel_case.hpp"

namespace cedar::tools {

using kernels::backend;
using kernels::bf16;
using kernels::matrix_view;

namespace {

kernel_case rope_2d_case(std::size_t heads, std::size_t head_dim, std::size_t n) {
  return {"rope_2d", fmt::format("{} heads x {}, {}", heads, head_dim, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const auto x = memory.numbers(n, heads * head_dim);
            const auto rows = memory.zeros<std::int32_t>(1, n);
            const auto columns = memory.zeros<std::int32_t>(1, n);
            for (std::size_t i = 0; i < n; ++i) {
              rows.data[i] = static_cast<std::int32_t>(i / 32);
              columns.data[i] = static_cast<std::int32_t>(i % 32);
            }
            const auto frequencies = memory.floats(1, head_dim / 4, 1);
            return {as_bytes(4 * n * heads * head_dim), 0, false, [=](const backend& with) {
                      with.rope_2d({x, head_dim, rows.row(0), columns.row(0), frequencies.row(0)});
                    }};
          }};
}

kernel_case full_attention_case(std::size_t heads, std::size_t head_dim, std::size_t n) {
  return {"full_attention",
          fmt::format("{} heads x {}, {} keys, {}", heads, head_dim, n, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const std::size_t width = heads * head_dim;
            const matrix_view<const bf16> q = memory.numbers(n, width);
            const matrix_view<const bf16> k = memory.numbers(n, width);
            const matrix_view<const bf16> v = memory.numbers(n, width);
            const auto o = memory.zeros<bf16>(n, width);
            return {as_bytes(8 * n * width), 4.0 * static_cast<double>(n * n * width), false,
                    [=](const backend& with) {
                      with.full_attention(
                          {o, q, k, v, head_dim, static_cast<float>(1.0 / std::sqrt(head_dim))});
                    }};
          }};
}

kernel_case gelu_case(std::size_t width, std::size_t n) {
  return {
      "gelu", fmt::format("{}, {}", width, rows_text(n)),
      [=](bench_memory& memory, const backend&) -> kernel_call {
        const matrix_view<const bf16> x = memory.numbers(n, width);
        const auto y = memory.zeros<bf16>(n, width);
        return {as_bytes(4 * n * width), 0, false, [=](const backend& with) { with.gelu({y, x}); }};
      }};
}

kernel_case add_case(std::size_t width, std::size_t n) {
  return {"add", fmt::format("{}, {}", width, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const matrix_view<const bf16> a = memory.numbers(n, width);
            const matrix_view<const bf16> b = memory.numbers(n, width);
            const auto y = memory.zeros<bf16>(n, width);
            return {as_bytes(6 * n * width), 0, false, [=](const backend& with) {
                      with.add({y, a, b});
                    }};
          }};
}

}  // namespace

void add_vision_cases(std::vector<kernel_case>& to, const model::model_config& c,
                      const case_sizes& sizes) {
  if (c.vision.layers == 0) return;
  const std::size_t n = std::max<std::size_t>(*std::ranges::max_element(sizes.rows), 16);
  const std::size_t head_dim = c.vision.width / c.vision.heads;
  to.push_back(rope_2d_case(c.vision.heads, head_dim, n));
  to.push_back(full_attention_case(c.vision.heads, head_dim, n));
  to.push_back(gelu_case(c.vision.width, n));
  to.push_back(add_case(c.vision.width, n));
}

}  // namespace cedar::tools
