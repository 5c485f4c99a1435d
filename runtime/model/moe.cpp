#include "runtime/model/moe.hpp"

#include <algorithm>

#include "kernels/ops/selection.hpp"

namespace cedar::model {

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

expert_context experts_of(const context& c) {
  return {c.kernels, c.config, c.scratch};
}

matrix_view<bf16> run_shared(const context& c, const shared_expert_weights& expert,
                             const quantized_rows& x) {
  const expert_context e = experts_of(c);
  const auto y = c.scratch.take<bf16>(x.codes.rows, c.config.width);
  const expert_halves both = take_halves(e, x.codes.rows);
  const kernels::linear_fp8_arguments halves[] = {{both.gate, x, expert.w1},
                                                  {both.up, x, expert.w3}};
  c.kernels.grouped_linear_fp8({halves});
  c.kernels.linear_fp8({y, activate(e, both, {}), expert.w2, hidden_segments(c.config)});
  return y;
}

}  // namespace

opened_moe open_moe(const context& c, std::uint32_t layer, const moe_weights& weights,
                    matrix_view<const bf16> x, matrix_view<const std::int32_t> forced_experts) {
  const routing routes = route(c, layer, weights, x, forced_experts);
  const std::size_t parts_per_row = routes.experts.cols + 1;
  opened_moe out{routes.experts,
                 routes.weights,
                 group_by_expert(c.scratch, weights.experts.size(), routes.experts, routes.weights),
                 {},
                 c.scratch.take<const bf16*>(x.rows, parts_per_row)};
  const auto places = c.scratch.take<std::uint32_t>(1, out.groups.rows.size()).row(0);
  const auto filled = c.scratch.take<std::uint32_t>(1, x.rows).row(0);
  std::ranges::fill(filled, 0U);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::uint32_t row = out.groups.rows[i];
    places[i] = static_cast<std::uint32_t>(row * parts_per_row) + filled[row]++;
  }
  out.places = places;
  return out;
}

void run_moe_here(const context& c, const moe_weights& weights, const quantized_rows& x,
                  const opened_moe& opened) {
  const auto y = c.scratch.take<bf16>(choices_of(weights.experts, opened.groups), c.config.width);
  run_experts(experts_of(c), weights.experts, x, opened.groups, y);
  std::size_t first = 0;
  for (std::size_t expert = 0; expert < weights.experts.size(); ++expert) {
    if (!weights.experts[expert].present()) continue;
    const std::size_t count = opened.groups.size_of(expert);
    put_outputs(opened, expert, y.rows_from(first, count));
    first += count;
  }
  const auto shared = run_shared(c, weights.shared, x);
  for (std::size_t row = 0; row < shared.rows; ++row)
    opened.parts.row(row).back() = shared.row_data(row);
}

void put_outputs(const opened_moe& opened, std::size_t expert, matrix_view<const bf16> y) {
  const std::size_t first = opened.groups.begins[expert];
  for (std::size_t i = 0; i < y.rows; ++i)
    opened.parts.data[opened.places[first + i]] = y.row_data(i);
}

matrix_view<bf16> close_moe(const context& c, const opened_moe& opened) {
  const auto y = c.scratch.take<bf16>(opened.parts.rows, c.config.width);
  c.kernels.moe_combine(
      {y, {opened.parts.data, opened.parts.rows * opened.parts.cols}, opened.parts.cols});
  return y;
}

}  // namespace cedar::model
