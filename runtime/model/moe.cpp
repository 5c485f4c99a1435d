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

/// Rows gathered for one expert, and where their results belong.
struct expert_batch {
  matrix_view<std::uint8_t> codes;
  matrix_view<std::uint8_t> scales;
  std::span<float> route_weights;
};

/// One routed expert over its rows: [m, d].
matrix_view<bf16> run_expert(const context& c, const expert_weights& expert,
                             const expert_batch& batch) {
  const std::size_t m = batch.codes.rows;
  const kernels::fp8_rows_view x{batch.codes, batch.scales};
  const auto gate = c.scratch.take<bf16>(m, c.config.expert_inner);
  const auto up = c.scratch.take<bf16>(m, c.config.expert_inner);
  c.kernels.linear_fp4({gate, x, expert.w1});
  c.kernels.linear_fp4({up, x, expert.w3});
  const auto hidden = c.scratch.take<bf16>(m, c.config.expert_inner);
  c.kernels.swiglu({hidden, gate, up, batch.route_weights, c.config.swiglu_limit});
  const auto y = c.scratch.take<bf16>(m, c.config.width);
  const std::size_t segments = c.config.expert_inner % (4 * 32) == 0 ? 4 : 1;
  c.kernels.linear_fp4({y, quantize(c, hidden), expert.w2, segments});
  return y;
}

matrix_view<bf16> run_shared(const context& c, const shared_expert_weights& expert,
                             const quantized_rows& x) {
  const std::size_t n = x.codes.rows;
  const auto gate = c.scratch.take<bf16>(n, c.config.expert_inner);
  const auto up = c.scratch.take<bf16>(n, c.config.expert_inner);
  c.kernels.linear_fp8({gate, x, expert.w1});
  c.kernels.linear_fp8({up, x, expert.w3});
  const auto hidden = c.scratch.take<bf16>(n, c.config.expert_inner);
  c.kernels.swiglu({hidden, gate, up, {}, c.config.swiglu_limit});
  const auto y = c.scratch.take<bf16>(n, c.config.width);
  const std::size_t segments = c.config.expert_inner % (4 * 32) == 0 ? 4 : 1;
  c.kernels.linear_fp8({y, quantize(c, hidden), expert.w2, segments});
  return y;
}

/// Runs every expert that some row chose, each once over all its rows, and notes in `parts` where
/// each row's outputs lie, ascending expert id.
void run_routed(const context& c, const moe_weights& weights, const quantized_rows& x,
                const routing& routes, std::size_t parts_per_row, std::span<const bf16*> parts) {
  const std::size_t n = x.codes.rows;
  const std::size_t k = routes.experts.cols;
  const auto rows = c.scratch.take<std::uint32_t>(1, n);
  const auto filled = c.scratch.take<std::uint32_t>(1, n);
  std::ranges::fill(filled.row(0), 0U);
  for (std::size_t expert = 0; expert < weights.experts.size(); ++expert) {
    const auto route_weights = c.scratch.take<float>(1, n);
    std::size_t m = 0;
    for (std::size_t row = 0; row < n; ++row)
      for (std::size_t slot = 0; slot < k; ++slot)
        if (static_cast<std::size_t>(routes.experts.row(row)[slot]) == expert) {
          rows.data[m] = static_cast<std::uint32_t>(row);
          route_weights.data[m++] = routes.weights.row(row)[slot];
        }
    if (m == 0) continue;
    const expert_batch batch{c.scratch.take<std::uint8_t>(m, x.codes.cols),
                             c.scratch.take<std::uint8_t>(m, x.scales.cols),
                             {route_weights.data, m}};
    for (std::size_t i = 0; i < m; ++i) {
      std::ranges::copy(x.codes.row(rows.data[i]), batch.codes.row_data(i));
      std::ranges::copy(x.scales.row(rows.data[i]), batch.scales.row_data(i));
    }
    const auto y = run_expert(c, weights.experts[expert], batch);
    for (std::size_t i = 0; i < m; ++i) {
      const std::size_t row = rows.data[i];
      parts[row * parts_per_row + filled.data[row]++] = y.row_data(i);
    }
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
