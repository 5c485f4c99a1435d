// What is done to rows between products: norms, streams, rotation, experts' gates, Engram.
#include <fmt/format.h>

#include <algorithm>

#include "tools/cedar/bench_kernel_case.hpp"

namespace cedar::tools {

using kernels::backend;
using kernels::bf16;
using kernels::matrix_view;

namespace {

/// Rows of numbers, in turns if they are many.
turns<bf16> inputs(bench_memory& memory, std::size_t rows, std::size_t cols) {
  return memory.taking_turns<bf16>(
      rows, cols, [&](std::size_t n, std::size_t w) { return memory.numbers(n, w); });
}

turns<bf16> outputs(bench_memory& memory, std::size_t rows, std::size_t cols) {
  return memory.taking_turns<bf16>(
      rows, cols, [&](std::size_t n, std::size_t w) { return memory.zeros<bf16>(n, w); });
}

bool leaves_caches(std::size_t bytes) {
  return bytes >= bench_memory::turning_bytes;
}

kernel_case norm_case(std::size_t d, std::size_t n) {
  return {"rms_norm", fmt::format("{}, {}", d, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const auto weight = memory.numbers(1, d);
            return {as_bytes(4 * n * d + 2 * d), 0, leaves_caches(2 * n * d),
                    [=, x = inputs(memory, n, d),
                     y = outputs(memory, n, d)](const backend& with) mutable {
                      with.rms_norm({y.next(), x.next(), weight.row(0), 1e-6F});
                    }};
          }};
}

kernel_case quantize_case(std::size_t k, std::size_t n) {
  return {"quantize_fp8", fmt::format("{}, {}", k, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const auto codes = memory.zeros<std::uint8_t>(n, k);
            const auto scales = memory.zeros<std::uint8_t>(n, k / 32);
            return {as_bytes(n * (3 * k + k / 32)), 0, leaves_caches(2 * n * k),
                    [=, x = inputs(memory, n, k)](const backend& with) mutable {
                      with.quantize_fp8({x.next(), codes, scales});
                    }};
          }};
}

kernel_case norm_quantize_case(std::size_t d, std::size_t n) {
  return {
      "rms_norm_quantize", fmt::format("{}, {}", d, rows_text(n)),
      [=](bench_memory& memory, const backend&) -> kernel_call {
        const auto weight = memory.numbers(1, d);
        const auto codes = memory.zeros<std::uint8_t>(n, d);
        const auto scales = memory.zeros<std::uint8_t>(n, d / 32);
        return {
            as_bytes(n * (5 * d + d / 32) + 2 * d), 0, leaves_caches(2 * n * d),
            [=, x = inputs(memory, n, d), y = outputs(memory, n, d)](const backend& with) mutable {
              with.rms_norm_quantize({{y.next(), x.next(), weight.row(0), 1e-6F}, codes, scales});
            }};
      }};
}

kernel_case coefficients_case(const model::model_config& c, std::size_t n) {
  const std::size_t s = c.streams;
  const std::size_t width = s * c.width;
  const std::size_t outs = (2 + s) * s;
  return {"hc_coefficients", fmt::format("{} streams x {}, {}", s, c.width, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const auto base = memory.floats(1, outs, 0.5F);
            const auto scale = memory.filled<float>(1, 3, 0.5F);
            const auto pre = memory.zeros<float>(n, s);
            const auto post = memory.zeros<float>(n, s);
            const auto combine = memory.zeros<float>(n, s * s);
            return {as_bytes(4 * outs * width + 2 * n * width + 4 * n * outs),
                    2.0 * static_cast<double>(n * (outs + 1) * width), true,
                    [=, &memory, x = inputs(memory, n, width)](const backend& with) mutable {
                      with.hc_coefficients({x.next(), memory.next_plain<float>(outs, width),
                                            base.row(0), scale.row(0), c.sinkhorn_iterations,
                                            c.hc_epsilon, c.rms_epsilon, pre, post, combine});
                    }};
          }};
}

kernel_case collapse_case(const model::model_config& c, std::size_t n) {
  const std::size_t s = c.streams;
  const std::size_t d = c.width;
  return {"hc_collapse", fmt::format("{} streams x {}, {}", s, d, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const auto pre = memory.floats(n, s, 1);
            return {as_bytes(2 * n * (s + 1) * d), 2.0 * static_cast<double>(n * s * d),
                    leaves_caches(2 * n * s * d),
                    [=, x = inputs(memory, n, s * d),
                     y = outputs(memory, n, d)](const backend& with) mutable {
                      with.hc_collapse({y.next(), x.next(), pre});
                    }};
          }};
}

kernel_case expand_case(const model::model_config& c, std::size_t n) {
  const std::size_t s = c.streams;
  const std::size_t d = c.width;
  return {"hc_expand", fmt::format("{} streams x {}, {}", s, d, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const auto post = memory.floats(n, s, 1);
            const auto combine = memory.floats(n, s * s, 0.25F);
            return {as_bytes(2 * n * (2 * s + 1) * d),
                    2.0 * static_cast<double>(n * s * (s + 1) * d), leaves_caches(2 * n * s * d),
                    [=, x = inputs(memory, n, s * d), y = inputs(memory, n, d),
                     out = outputs(memory, n, s * d)](const backend& with) mutable {
                      with.hc_expand({out.next(), x.next(), y.next(), post, combine});
                    }};
          }};
}

kernel_case transition_case(const model::model_config& c, std::size_t n) {
  const std::size_t s = c.streams;
  const std::size_t d = c.width;
  const std::size_t outs = (2 + s) * s;
  return {"hc_transition", fmt::format("{} streams x {}, {}", s, d, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const auto post = memory.floats(n, s, 1);
            const auto combine = memory.floats(n, s * s, 0.25F);
            const auto pre = memory.floats(n, s, 1);
            const auto norm = memory.numbers(1, d);
            const auto codes = memory.zeros<std::uint8_t>(n, d);
            const auto scales = memory.zeros<std::uint8_t>(n, d / 32);
            const auto base = memory.floats(1, outs, 0.5F);
            const auto scale = memory.filled<float>(1, 3, 0.5F);
            const auto next_pre = memory.zeros<float>(n, s);
            const auto next_post = memory.zeros<float>(n, s);
            const auto next_combine = memory.zeros<float>(n, s * s);
            // (2 s + 2) d elements of activations, the codes of x, and fn once.
            return {as_bytes(2 * n * (2 * s + 2) * d + n * (d + d / 32) + 4 * outs * s * d),
                    2.0 * static_cast<double>(n * s * d * (s + 3 + outs)), true,
                    [=, &memory, in = inputs(memory, n, s * d), y = inputs(memory, n, d),
                     out = outputs(memory, n, s * d),
                     x = outputs(memory, n, d)](const backend& with) mutable {
                      with.hc_transition({{out.next(), in.next(), y.next(), post, combine},
                                          pre,
                                          norm.row(0),
                                          c.rms_epsilon,
                                          x.next(),
                                          codes,
                                          scales,
                                          memory.next_plain<float>(outs, s * d),
                                          base.row(0),
                                          scale.row(0),
                                          c.sinkhorn_iterations,
                                          c.hc_epsilon,
                                          next_pre,
                                          next_post,
                                          next_combine});
                    }};
          }};
}

kernel_case rope_case(const model::model_config& c, std::size_t n) {
  const std::size_t width = std::size_t{c.heads} * c.head_dim;
  return {"rope", fmt::format("{} heads x {}, {}", c.heads, c.head_dim, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const auto positions = memory.zeros<std::int32_t>(1, n);
            for (std::size_t i = 0; i < n; ++i) positions.data[i] = static_cast<std::int32_t>(i);
            const auto frequencies = memory.floats(1, c.rope_dim / 2, 1);
            // The rotated part of a head is read and written.
            return {as_bytes(4 * n * c.heads * c.rope_dim), 0, false,
                    [=, x = inputs(memory, n, width)](const backend& with) mutable {
                      with.rope({x.next(), c.head_dim, positions.row(0), frequencies.row(0)});
                    }};
          }};
}

kernel_case pool_case(const model::model_config& c, std::size_t groups) {
  const std::size_t w = c.head_dim;
  constexpr std::size_t ratio = 2;
  return {"compressor_pool", fmt::format("ratio {}, {}, {} groups", ratio, w, groups),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const auto values = memory.floats(groups * ratio, w, 1);
            const auto gates = memory.floats(groups * ratio, w, 4);
            const auto z = memory.zeros<bf16>(groups, w);
            return {as_bytes(groups * w * (8 * ratio + 2)), 0, false, [=](const backend& with) {
                      with.compressor_pool({z, values, gates, ratio});
                    }};
          }};
}

kernel_case gate_case(const model::model_config& c, std::size_t n) {
  const std::size_t experts = c.routed_experts;
  return {"gate_scores", fmt::format("{} experts, {}", experts, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            // In place: what it makes is again a number of ordinary size.
            const auto scores = memory.floats(n, experts, 4);
            return {as_bytes(8 * n * experts), 0, false,
                    [=](const backend& with) { with.gate_scores({scores}); }};
          }};
}

kernel_case swiglu_case(const model::model_config& c, std::size_t n) {
  const std::size_t w = c.expert_inner;
  return {"swiglu", fmt::format("{}, {}", w, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const auto weights = memory.filled<float>(1, n, 0.5F);
            return {
                as_bytes(6 * n * w), 0, leaves_caches(2 * n * w),
                [=, gate = inputs(memory, n, w), up = inputs(memory, n, w),
                 y = outputs(memory, n, w)](const backend& with) mutable {
                  with.swiglu({y.next(), gate.next(), up.next(), weights.row(0), c.swiglu_limit});
                }};
          }};
}

kernel_case swiglu_quantize_case(const model::model_config& c, std::size_t n) {
  const std::size_t w = c.expert_inner;
  return {"swiglu_quantize", fmt::format("{}, {}", w, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const auto weights = memory.filled<float>(1, n, 0.5F);
            const auto codes = memory.zeros<std::uint8_t>(n, w);
            const auto scales = memory.zeros<std::uint8_t>(n, w / 32);
            return {as_bytes(n * (5 * w + w / 32)), 0, leaves_caches(2 * n * w),
                    [=, gate = inputs(memory, n, w),
                     up = inputs(memory, n, w)](const backend& with) mutable {
                      with.swiglu_quantize(
                          {codes, scales, gate.next(), up.next(), weights.row(0), c.swiglu_limit});
                    }};
          }};
}

kernel_case combine_case(const model::model_config& c, std::size_t n) {
  const std::size_t parts = c.experts_per_token + 1;
  const std::size_t d = c.width;
  return {"moe_combine", fmt::format("{} parts, {}, {}", parts, d, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const auto all = memory.numbers(n * parts, d);
            const auto pointers = memory.zeros<const bf16*>(1, n * parts);
            for (std::size_t i = 0; i < n * parts; ++i) pointers.data[i] = all.row_data(i);
            const auto y = memory.zeros<bf16>(n, d);
            return {as_bytes(2 * n * d * (parts + 1)), 0, leaves_caches(2 * n * d * parts),
                    [=](const backend& with) {
                      with.moe_combine({y, pointers.row(0), parts});
                    }};
          }};
}

kernel_case engram_case(const model::model_config& c, std::size_t n) {
  const std::size_t s = c.streams;
  const std::size_t d = c.width;
  return {"engram_gate", fmt::format("{} streams x {}, {}", s, d, rows_text(n)),
          [=](bench_memory& memory, const backend&) -> kernel_call {
            const matrix_view<const bf16> q = memory.numbers(s, d);
            const matrix_view<const bf16> k = memory.numbers(s, d);
            const auto images = memory.zeros<std::uint8_t>(1, n);
            const auto gates = memory.zeros<float>(n, s);
            return {as_bytes(2 * n * (3 * s + 1) * d + 4 * s * d), 0, leaves_caches(2 * n * s * d),
                    [=, x = inputs(memory, n, s * d), kv = inputs(memory, n, (s + 1) * d),
                     out = outputs(memory, n, s * d)](const backend& with) mutable {
                      with.engram_gate({out.next(), x.next(), kv.next(), q, k, images.row(0),
                                        c.rms_epsilon, gates});
                    }};
          }};
}

}  // namespace

void add_row_cases(std::vector<kernel_case>& to, const model::model_config& c,
                   const case_sizes& sizes) {
  for (const std::size_t n : sizes.rows) {
    to.push_back(norm_case(c.width, n));
    to.push_back(quantize_case(c.width, n));
    to.push_back(norm_quantize_case(c.width, n));
    to.push_back(coefficients_case(c, n));
    to.push_back(collapse_case(c, n));
    to.push_back(expand_case(c, n));
    to.push_back(transition_case(c, n));
    to.push_back(rope_case(c, n));
    to.push_back(gate_case(c, n));
    to.push_back(swiglu_case(c, n));
    to.push_back(swiglu_quantize_case(c, n));
    to.push_back(combine_case(c, n));
    if (!c.engram.layers.empty()) to.push_back(engram_case(c, n));
  }
  to.push_back(pool_case(c, std::max<std::size_t>(*std::ranges::max_element(sizes.rows) / 2, 1)));
}

}  // namespace cedar::tools
