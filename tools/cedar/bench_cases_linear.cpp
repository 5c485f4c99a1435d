// Linear layers: weights come from memory, as they do in a step; activations do not.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tools/cedar/bench_kernel_case.hpp"

namespace cedar::tools {

using kernels::bf16;
using kernels::matrix_view;

std::string rows_text(std::size_t n) {
  return fmt::format("{} row{}", n, n == 1 ? "" : "s");
}

std::vector<kernel_case> kernel_cases(const model::model_config& config, const case_sizes& sizes) {
  std::vector<kernel_case> out;
  add_linear_cases(out, config, sizes);
  add_attention_cases(out, config, sizes);
  add_row_cases(out, config, sizes);
  add_vision_cases(out, config, sizes);
  return out;
}

namespace {

struct shape {
  std::size_t o = 0;
  std::size_t k = 0;
  std::string what;  ///< what has this shape in the model

  double operations(std::size_t n) const { return 2.0 * static_cast<double>(n * o * k); }
  std::string text(std::size_t n) const {
    return fmt::format("{} x {}{}, {}", o, k, what.empty() ? "" : " (" + what + ")", rows_text(n));
  }
};

kernels::fp8_rows_view quantised(bench_memory& memory, const kernels::backend& backend,
                                 std::size_t n, std::size_t k) {
  const auto codes = memory.zeros<std::uint8_t>(n, k);
  const auto scales = memory.zeros<std::uint8_t>(n, k / 32);
  backend.quantize_fp8({memory.numbers(n, k), codes, scales});
  return {codes, scales};
}

kernel_case fp8_case(const shape& s, std::size_t n) {
  return {"linear_fp8", s.text(n),
          [s, n](bench_memory& memory, const kernels::backend& backend) -> kernel_call {
            const auto x = quantised(memory, backend, n, s.k);
            const auto y = memory.zeros<bf16>(n, s.o);
            return {
                as_bytes(s.o * s.k + (s.o + 31) / 32 * (s.k / 32) + n * (s.k + s.k / 32 + 2 * s.o)),
                s.operations(n), true, [=, &memory](const kernels::backend& with) {
                  with.linear_fp8({y, x, memory.next_fp8(s.o, s.k)});
                }};
          }};
}

kernel_case fp4_case(const shape& s, std::size_t n) {
  return {"linear_fp4", s.text(n),
          [s, n](bench_memory& memory, const kernels::backend& backend) -> kernel_call {
            const auto x = quantised(memory, backend, n, s.k);
            const auto y = memory.zeros<bf16>(n, s.o);
            return {as_bytes(s.o * (s.k / 2 + s.k / 32) + n * (s.k + s.k / 32 + 2 * s.o)),
                    s.operations(n), true, [=, &memory](const kernels::backend& with) {
                      with.linear_fp4({y, x, memory.next_fp4(s.o, s.k)});
                    }};
          }};
}

kernel_case weight_only_case(const shape& s, std::size_t n) {
  return {"linear_fp8_weight_only", s.text(n),
          [s, n](bench_memory& memory, const kernels::backend&) -> kernel_call {
            const matrix_view<const bf16> x = memory.numbers(n, s.k);
            const auto y = memory.zeros<bf16>(n, s.o);
            return {as_bytes(s.o * s.k + (s.o + 31) / 32 * (s.k / 32) + 2 * n * (s.k + s.o)),
                    s.operations(n), true, [=, &memory](const kernels::backend& with) {
                      with.linear_fp8_weight_only({y, x, memory.next_fp8(s.o, s.k)});
                    }};
          }};
}

kernel_case bf16_case(const shape& s, std::size_t n) {
  return {"linear_bf16", s.text(n),
          [s, n](bench_memory& memory, const kernels::backend&) -> kernel_call {
            const matrix_view<const bf16> x = memory.numbers(n, s.k);
            const auto y = memory.zeros<bf16>(n, s.o);
            return {as_bytes(2 * (s.o * s.k + n * (s.k + s.o))), s.operations(n), true,
                    [=, &memory](const kernels::backend& with) {
                      with.linear_bf16({y, x, memory.next_plain<bf16>(s.o, s.k)});
                    }};
          }};
}

kernel_case f32_case(const shape& s, std::size_t n) {
  return {"linear_f32", s.text(n),
          [s, n](bench_memory& memory, const kernels::backend&) -> kernel_call {
            const matrix_view<const bf16> x = memory.numbers(n, s.k);
            const auto y = memory.zeros<float>(n, s.o);
            return {as_bytes(2 * (s.o * s.k + n * s.k) + 4 * n * s.o), s.operations(n), true,
                    [=, &memory](const kernels::backend& with) {
                      with.linear_f32({y, x, memory.next_plain<bf16>(s.o, s.k)});
                    }};
          }};
}

/// Experts of n rows each, side by side.
kernel_case experts_case(const shape& s, std::size_t experts, std::size_t n) {
  return {"grouped_linear_fp4", fmt::format("{} x {} each", experts, s.text(n)),
          [=](bench_memory& memory, const kernels::backend& backend) -> kernel_call {
            const auto x = quantised(memory, backend, n, s.k);
            std::vector<kernels::linear_fp4_arguments> products(experts);
            for (auto& each : products) each = {memory.zeros<bf16>(n, s.o), x, {}};
            const std::size_t one = s.o * (s.k / 2 + s.k / 32) + n * (s.k + s.k / 32 + 2 * s.o);
            return {as_bytes(experts * one), static_cast<double>(experts) * s.operations(n), true,
                    [=, &memory](const kernels::backend& with) mutable {
                      for (auto& each : products) each.weight = memory.next_fp4(s.o, s.k);
                      with.grouped_linear_fp4({products});
                    }};
          }};
}

/// Two projections of the same rows.
kernel_case pair_case(const shape& a, const shape& b, std::size_t n) {
  return {"grouped_linear_fp8", fmt::format("{} + {}", a.what, b.text(n)),
          [=](bench_memory& memory, const kernels::backend& backend) -> kernel_call {
            const auto x = quantised(memory, backend, n, a.k);
            const auto ya = memory.zeros<bf16>(n, a.o), yb = memory.zeros<bf16>(n, b.o);
            const std::size_t o = a.o + b.o;
            return {as_bytes(o * a.k + o / 32 * (a.k / 32) + n * (2 * (a.k + a.k / 32) + 2 * o)),
                    a.operations(n) + b.operations(n), true,
                    [=, &memory](const kernels::backend& with) {
                      const kernels::linear_fp8_arguments products[] = {
                          {ya, x, memory.next_fp8(a.o, a.k)}, {yb, x, memory.next_fp8(b.o, b.k)}};
                      with.grouped_linear_fp8({products});
                    }};
          }};
}

/// The groups of wo_a, which have columns of their own.
kernel_case groups_case(const shape& s, std::size_t groups, std::size_t n) {
  return {"grouped_linear_fp8_weight_only", fmt::format("{} x {}", groups, s.text(n)),
          [=](bench_memory& memory, const kernels::backend&) -> kernel_call {
            const matrix_view<const bf16> x = memory.numbers(n, groups * s.k);
            const auto y = memory.zeros<bf16>(n, groups * s.o);
            std::vector<kernels::linear_fp8_weight_only_arguments> products(groups);
            for (std::size_t g = 0; g < groups; ++g)
              products[g] = {y.cols_from(g * s.o, s.o), x.cols_from(g * s.k, s.k), {}};
            const std::size_t one = s.o * s.k + (s.o + 31) / 32 * (s.k / 32) + 2 * n * (s.k + s.o);
            return {as_bytes(groups * one), static_cast<double>(groups) * s.operations(n), true,
                    [=, &memory](const kernels::backend& with) mutable {
                      for (auto& each : products) each.weight = memory.next_fp8(s.o, s.k);
                      with.grouped_linear_fp8_weight_only({products});
                    }};
          }};
}

/// With the same product of binary32 by another library beside it where rows are many.
kernel_case beside(kernel_case made, const shape& s, std::size_t n) {
  if (n > 1) made.product = product_shape{n, s.o, s.k};
  return made;
}

}  // namespace

void add_linear_cases(std::vector<kernel_case>& to, const model::model_config& c,
                      const case_sizes& sizes) {
  const std::size_t d = c.width;
  const std::size_t heads_width = std::size_t{c.heads} * c.head_dim;
  const shape square{d, d, ""};
  const shape expert{c.expert_inner, d, "expert w1, w3"};
  const shape expert_out{d, c.expert_inner, "expert w2"};
  for (const std::size_t n : sizes.rows) {
    to.push_back(beside(fp8_case(square, n), square, n));
    to.push_back(beside(fp4_case(square, n), square, n));
    to.push_back(beside(fp4_case(expert, n), expert, n));
    to.push_back(beside(fp4_case(expert_out, n), expert_out, n));
    to.push_back(experts_case(expert, c.experts_per_token, n));
    to.push_back(pair_case({c.q_rank, d, "wq_a"}, {c.head_dim, d, "wkv"}, n));
    to.push_back(weight_only_case({c.o_rank, heads_width / c.o_groups, "a group of wo_a"}, n));
    to.push_back(groups_case({c.o_rank, heads_width / c.o_groups, "wo_a"}, c.o_groups, n));
    to.push_back(bf16_case(square, n));
    to.push_back(f32_case({c.routed_experts, d, "gate"}, n));
  }
  to.push_back(fp8_case({c.q_rank, d, "wq_a"}, 1));
  to.push_back(fp8_case({heads_width, c.q_rank, "wq_b"}, 1));
  to.push_back(fp8_case({c.head_dim, d, "wkv"}, 1));
  to.push_back(fp8_case({d, std::size_t{c.o_groups} * c.o_rank, "wo_b"}, 1));
  to.push_back(fp8_case({c.expert_inner, d, "shared w1, w3"}, 1));
  to.push_back(fp8_case({d, c.expert_inner, "shared w2"}, 1));
  to.push_back(bf16_case({c.head_dim, d, "compressor wkv"}, 1));
  to.push_back(bf16_case({c.index_heads, d, "indexer weights_proj"}, 1));
  // A slice: all of the released head would be more than the memory that turns.
  to.push_back(f32_case({std::min<std::size_t>(c.vocabulary, 32768), d, "of the head"}, 1));
}

}  // namespace cedar::tools
