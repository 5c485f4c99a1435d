#include "runtime/model/moe.hpp"

#include <algorithm>

#include "kernels/ops/selection.hpp"

namespace cedar::model {

using kernels::bf16;
using kernels::matrix_view;

namespace {

struct routing {
  matrix_view<const std::int32_t> experts;  ///< [n, k], best first
  matrix_view<float> weights;  ///< [n, k]
};

routing route(const context& c, std::uint32_t layer, const moe_weights& weights,
              matrix_view<const bf16> x, matrix_view<const std::int32_t> forced_experts) {
  const std::size_t n = x.rows;
  const std::size_t k = weights.experts_per_token;
  const auto scores = c.scratch.take<float>(n, weights.experts.size());
  c.kernels.linear_f32({scores, x, weights.gate});
  c.kernels.gate_scores({scores});
  routing out{forced_experts, c.scratch.take<float>(n, k)};
  if (forced_experts.rows == 0) {
    const auto chosen = c.scratch.take<std::int32_t>(n, k);
    kernels::select_experts(scores, weights.bias, weights.bias_vl, c.image_rows, chosen);
    out.experts = chosen;
  }
  kernels::route_weights(scores, out.experts, c.config.normalize_topk, c.config.route_scale,
                         out.weights);
  c.probes.offer(layer, "gate.scores", matrix_view<const float>(scores));
  c.probes.offer(layer, "gate.indices", out.experts);
  c.probes.offer(layer, "gate.weights", matrix_view<const float>(out.weights));
  return out;
}

/// Segments of w2, which may be split by columns.
std::size_t hidden_segments(const context& c) {
  return c.config.expert_inner % (4 * 32) == 0 ? 4 : 1;
}

/// The projections of an expert before its activation: [m, inner] each.
struct halves {
  matrix_view<bf16> gate;
  matrix_view<bf16> up;
};

halves take_halves(const context& c, std::size_t m) {
  return {c.scratch.take<bf16>(m, c.config.expert_inner),
          c.scratch.take<bf16>(m, c.config.expert_inner)};
}

quantized_rows activate(const context& c, const halves& of, std::span<const float> route_weights) {
  const quantized_rows hidden = take_quantized(c.scratch, of.gate.rows, of.gate.cols);
  c.kernels.swiglu_quantize(
      {hidden.codes, hidden.scales, of.gate, of.up, route_weights, c.config.swiglu_limit});
  return hidden;
}

/// One routed expert over its rows x [m, d]: y [m, d].
void run_expert(const context& c, const expert_weights& expert, const kernels::fp8_rows_view& x,
                std::span<const float> route_weights, matrix_view<bf16> y) {
  const kernels::arena::mark scope(c.scratch);
  const halves both = take_halves(c, y.rows);
  c.kernels.linear_fp4({both.gate, x, expert.w1});
  c.kernels.linear_fp4({both.up, x, expert.w3});
  c.kernels.linear_fp4({y, activate(c, both, route_weights), expert.w2, hidden_segments(c)});
}

matrix_view<bf16> run_shared(const context& c, const shared_expert_weights& expert,
                             const quantized_rows& x) {
  const auto y = c.scratch.take<bf16>(x.codes.rows, c.config.width);
  const halves both = take_halves(c, x.codes.rows);
  c.kernels.linear_fp8({both.gate, x, expert.w1});
  c.kernels.linear_fp8({both.up, x, expert.w3});
  c.kernels.linear_fp8({y, activate(c, both, {}), expert.w2, hidden_segments(c)});
  return y;
}

/// The choices of all rows by expert: those of expert e are [begins[e], begins[e + 1]), rows
/// ascending.
struct expert_groups {
  std::span<std::uint32_t> begins;  ///< [E + 1]
  std::span<std::uint32_t> rows;  ///< [n * k]
  std::span<float> weights;  ///< [n * k], of the routes
};

/// By counting: work in proportion to n * k + E.
expert_groups group_by_expert(const context& c, std::size_t experts, const routing& routes) {
  const std::size_t choices = routes.experts.rows * routes.experts.cols;
  const expert_groups out{c.scratch.take<std::uint32_t>(1, experts + 1).row(0),
                          c.scratch.take<std::uint32_t>(1, choices).row(0),
                          c.scratch.take<float>(1, choices).row(0)};
  const auto next = c.scratch.take<std::uint32_t>(1, experts).row(0);
  std::ranges::fill(next, 0U);
  for (std::size_t row = 0; row < routes.experts.rows; ++row)
    for (const std::int32_t expert : routes.experts.row(row))
      ++next[static_cast<std::size_t>(expert)];
  out.begins[0] = 0;
  for (std::size_t expert = 0; expert < experts; ++expert) {
    out.begins[expert + 1] = out.begins[expert] + next[expert];
    next[expert] = out.begins[expert];
  }
  for (std::size_t row = 0; row < routes.experts.rows; ++row)
    for (std::size_t slot = 0; slot < routes.experts.cols; ++slot) {
      const std::uint32_t place = next[static_cast<std::size_t>(routes.experts.row(row)[slot])]++;
      out.rows[place] = static_cast<std::uint32_t>(row);
      out.weights[place] = routes.weights.row(row)[slot];
    }
  return out;
}

/// The rows of all choices one after another.
kernels::fp8_rows_view gather_rows(const context& c, const quantized_rows& x,
                                   std::span<const std::uint32_t> rows) {
  const quantized_rows out = take_quantized(c.scratch, rows.size(), x.codes.cols);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::ranges::copy(x.codes.row(rows[i]), out.codes.row_data(i));
    std::ranges::copy(x.scales.row(rows[i]), out.scales.row_data(i));
  }
  return out;
}

/// Asks for the first lines of the rows that a product begins with: while the expert before still
/// computes, their pages are looked up and their lines are on their way.
void prefetch(const kernels::fp4_weight_view& weight) {
  constexpr std::size_t rows = 8, lines = 4, line_bytes = 64;
  for (std::size_t row = 0; row < std::min(rows, weight.codes.rows); ++row) {
    for (std::size_t at = 0; at < std::min(lines * line_bytes, weight.codes.cols); at += line_bytes)
      __builtin_prefetch(weight.codes.row_data(row) + at);
    __builtin_prefetch(weight.scales.row_data(row));
  }
}

/// Runs every expert that some row chose, each once over all its rows, and notes in `parts` where
/// each row's outputs lie, ascending expert id.
void run_routed(const context& c, const moe_weights& weights, const quantized_rows& x,
                const routing& routes, std::size_t parts_per_row, std::span<const bf16*> parts) {
  const std::size_t experts = weights.experts.size();
  const expert_groups groups = group_by_expert(c, experts, routes);
  const auto y = c.scratch.take<bf16>(groups.rows.size(), c.config.width);
  const kernels::fp8_rows_view gathered = gather_rows(c, x, groups.rows);
  const auto chosen_from = [&](std::size_t expert) {
    while (expert < experts && groups.begins[expert] == groups.begins[expert + 1]) ++expert;
    return expert;
  };
  for (std::size_t expert = chosen_from(0); expert < experts;) {
    const std::size_t next = chosen_from(expert + 1);
    if (next < experts) prefetch(weights.experts[next].w1);
    const std::size_t first = groups.begins[expert];
    const std::size_t count = groups.begins[expert + 1] - first;
    run_expert(c, weights.experts[expert],
               {gathered.codes.rows_from(first, count), gathered.scales.rows_from(first, count)},
               groups.weights.subspan(first, count), y.rows_from(first, count));
    expert = next;
  }
  const auto filled = c.scratch.take<std::uint32_t>(1, x.codes.rows).row(0);
  std::ranges::fill(filled, 0U);
  for (std::size_t i = 0; i < groups.rows.size(); ++i) {
    const std::size_t row = groups.rows[i];
    parts[row * parts_per_row + filled[row]++] = y.row_data(i);
  }
}

}  // namespace

matrix_view<bf16> run_moe(const context& c, std::uint32_t layer, const moe_weights& weights,
                          matrix_view<const bf16> x, const quantized_rows& quantized,
                          matrix_view<const std::int32_t> forced_experts) {
  const std::size_t n = x.rows;
  const routing routes = route(c, layer, weights, x, forced_experts);
  const std::size_t parts_per_row = routes.experts.cols + 1;
  const auto parts = c.scratch.take<const bf16*>(n, parts_per_row);
  run_routed(c, weights, quantized, routes, parts_per_row, {parts.data, n * parts_per_row});
  const auto shared = run_shared(c, weights.shared, quantized);
  for (std::size_t row = 0; row < n; ++row)
    parts.row(row)[parts_per_row - 1] = shared.row_data(row);
  const auto y = c.scratch.take<bf16>(n, c.config.width);
  c.kernels.moe_combine({y, {parts.data, n * parts_per_row}, parts_per_row});
  return y;
}

}  // namespace cedar::model
