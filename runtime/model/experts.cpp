#include "runtime/model/experts.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"

namespace cedar::model {

using kernels::matrix_view;

namespace {

/// One routed expert over its rows x [m, d]: y [m, d].
void run_expert(const expert_context& c, const expert_weights& expert,
                const kernels::fp8_rows_view& x, std::span<const float> route_weights,
                matrix_view<bf16> y) {
  const kernels::arena::mark scope(c.scratch);
  const expert_halves both = take_halves(c, y.rows);
  c.kernels.linear_fp4({both.gate, x, expert.w1});
  c.kernels.linear_fp4({both.up, x, expert.w3});
  c.kernels.linear_fp4({y, activate(c, both, route_weights), expert.w2, hidden_segments(c.config)});
}

/// The rows of the choices of `here`, one after another.
kernels::fp8_rows_view gather_rows(const expert_context& c, std::span<const expert_weights> here,
                                   const kernels::fp8_rows_view& x, const expert_groups& groups,
                                   std::size_t count) {
  const quantized_rows out = take_quantized(c.scratch, count, x.codes.cols);
  std::size_t to = 0;
  for (std::size_t expert = 0; expert < here.size(); ++expert) {
    if (!here[expert].present()) continue;
    for (std::size_t i = groups.begins[expert]; i < groups.begins[expert + 1]; ++i, ++to) {
      std::ranges::copy(x.codes.row(groups.rows[i]), out.codes.row_data(to));
      std::ranges::copy(x.scales.row(groups.rows[i]), out.scales.row_data(to));
    }
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

}  // namespace

std::size_t hidden_segments(const model_config& config) noexcept {
  return config.expert_inner % (4 * 32) == 0 ? 4 : 1;
}

expert_halves take_halves(const expert_context& c, std::size_t m) {
  return {c.scratch.take<bf16>(m, c.config.expert_inner),
          c.scratch.take<bf16>(m, c.config.expert_inner)};
}

quantized_rows activate(const expert_context& c, const expert_halves& of,
                        std::span<const float> route_weights) {
  const quantized_rows hidden = take_quantized(c.scratch, of.gate.rows, of.gate.cols);
  c.kernels.swiglu_quantize(
      {hidden.codes, hidden.scales, of.gate, of.up, route_weights, c.config.swiglu_limit});
  return hidden;
}

expert_groups group_by_expert(kernels::arena& scratch, std::size_t experts,
                              matrix_view<const std::int32_t> chosen,
                              matrix_view<const float> weights) {
  const auto begins = scratch.take<std::uint32_t>(1, experts + 1).row(0);
  const auto next = scratch.take<std::uint32_t>(1, experts).row(0);
  std::ranges::fill(next, 0U);
  for (std::size_t row = 0; row < chosen.rows; ++row)
    for (const std::int32_t expert : chosen.row(row))
      if (expert >= 0) ++next[static_cast<std::size_t>(expert)];
  begins[0] = 0;
  for (std::size_t expert = 0; expert < experts; ++expert) {
    begins[expert + 1] = begins[expert] + next[expert];
    next[expert] = begins[expert];
  }
  const std::size_t choices = begins[experts];
  const auto rows = scratch.take<std::uint32_t>(1, choices).row(0);
  const auto route_weights = scratch.take<float>(1, choices).row(0);
  for (std::size_t row = 0; row < chosen.rows; ++row)
    for (std::size_t slot = 0; slot < chosen.cols; ++slot) {
      const std::int32_t expert = chosen.row(row)[slot];
      if (expert < 0) continue;
      const std::uint32_t place = next[static_cast<std::size_t>(expert)]++;
      rows[place] = static_cast<std::uint32_t>(row);
      route_weights[place] = weights.row(row)[slot];
    }
  return {begins, rows, route_weights};
}

std::size_t choices_of(std::span<const expert_weights> here, const expert_groups& groups) {
  std::size_t count = 0;
  for (std::size_t expert = 0; expert < here.size(); ++expert)
    if (here[expert].present()) count += groups.size_of(expert);
  return count;
}

void run_experts(const expert_context& c, std::span<const expert_weights> here,
                 const kernels::fp8_rows_view& x, const expert_groups& groups,
                 matrix_view<bf16> y) {
  CEDAR_REQUIRE(here.size() == groups.experts(), "weights of experts that nobody can choose");
  const kernels::arena::mark scope(c.scratch);
  const kernels::fp8_rows_view gathered = gather_rows(c, here, x, groups, y.rows);
  const auto chosen_from = [&](std::size_t expert) {
    while (expert < here.size() && (!here[expert].present() || groups.size_of(expert) == 0))
      ++expert;
    return expert;
  };
  std::size_t first = 0;
  for (std::size_t expert = chosen_from(0); expert < here.size();) {
    const std::size_t next = chosen_from(expert + 1);
    if (next < here.size()) prefetch(here[next].w1);
    const std::size_t count = groups.size_of(expert);
    run_expert(c, here[expert],
               {gathered.codes.rows_from(first, count), gathered.scales.rows_from(first, count)},
               groups.weights.subspan(groups.begins[expert], count), y.rows_from(first, count));
    first += count;
    expert = next;
  }
}

}  // namespace cedar::model
