#include "runtime/model/experts.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"

namespace cedar::model {

using kernels::matrix_view;

namespace {

/// The rows of the choices of some experts, one after another.
struct gathered_rows {
  quantized_rows x;  ///< [choices, d]
  std::span<float> weights;  ///< [choices], of the routes
};

gathered_rows gather_rows(const expert_context& c, std::span<const expert_weights> here,
                          const kernels::fp8_rows_view& x, const expert_groups& groups,
                          std::size_t count) {
  const gathered_rows out{take_quantized(c.scratch, count, x.codes.cols),
                          c.scratch.take<float>(1, count).row(0)};
  std::size_t to = 0;
  for (std::size_t expert = 0; expert < here.size(); ++expert) {
    if (!here[expert].present()) continue;
    for (std::size_t i = groups.begins[expert]; i < groups.begins[expert + 1]; ++i, ++to) {
      std::ranges::copy(x.codes.row(groups.rows[i]), out.x.codes.row_data(to));
      std::ranges::copy(x.scales.row(groups.rows[i]), out.x.scales.row_data(to));
      out.weights[to] = groups.weights[i];
    }
  }
  return out;
}

kernels::fp8_rows_view rows_from(const kernels::fp8_rows_view& x, std::size_t first,
                                 std::size_t count) {
  return {x.codes.rows_from(first, count), x.scales.rows_from(first, count)};
}

/// Calls visit(weights, first, count) for every expert of `here` that was chosen: it has rows
/// [first, first + count) of those gathered.
template <class Visit>
void for_each_chosen(std::span<const expert_weights> here, const expert_groups& groups,
                     const Visit& visit) {
  std::size_t first = 0;
  for (std::size_t expert = 0; expert < here.size(); ++expert) {
    const std::size_t count = here[expert].present() ? groups.size_of(expert) : 0;
    if (count == 0) continue;
    visit(here[expert], first, count);
    first += count;
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
  const std::size_t choices = y.rows;
  const gathered_rows gathered = gather_rows(c, here, x, groups, choices);
  const expert_halves both = take_halves(c, choices);
  // As many as there can be: what a step takes of the scratch follows from its rows alone.
  const auto products =
      c.scratch.take<kernels::linear_fp4_arguments>(1, 2 * std::min(here.size(), choices)).row(0);
  std::size_t count = 0;
  for_each_chosen(here, groups, [&](const expert_weights& of, std::size_t first, std::size_t rows) {
    const kernels::fp8_rows_view own = rows_from(gathered.x, first, rows);
    products[count++] = {both.gate.rows_from(first, rows), own, of.w1};
    products[count++] = {both.up.rows_from(first, rows), own, of.w3};
  });
  c.kernels.grouped_linear_fp4({products.first(count)});
  const quantized_rows hidden = activate(c, both, gathered.weights);
  count = 0;
  for_each_chosen(here, groups, [&](const expert_weights& of, std::size_t first, std::size_t rows) {
    products[count++] = {y.rows_from(first, rows), rows_from(hidden, first, rows), of.w2,
                         hidden_segments(c.config)};
  });
  c.kernels.grouped_linear_fp4({products.first(count)});
}

}  // namespace cedar::model
