// Mixture of experts: router, routed FP4 experts, one shared FP8 expert.
//
// Source: DeepSeek-V4.1-Flash reference code. s = sqrt(softplus(gate x)); experts = top-k of s +
// bias (bias_vl for image rows); weights from the unbiased scores. What an expert computes:
// experts.hpp. Outputs are bf16, added in fp32 by ascending expert id, the shared expert last.
//
// It comes in three parts, because between the routing and the sum the outputs of some experts may
// have to be fetched: open_moe(), run_moe_here() and put_outputs() in any order, close_moe().
#pragma once

#include "runtime/model/context.hpp"
#include "runtime/model/experts.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::model {

/// Rows whose experts are chosen. Views into the context's scratch.
struct opened_moe {
  kernels::matrix_view<const std::int32_t> experts;  ///< [n, k], best first
  kernels::matrix_view<const float> weights;  ///< [n, k], of the routes
  expert_groups groups;
  std::span<const std::uint32_t>
      places;  ///< [n * k]: of the choices in groups, their place in parts
  kernels::matrix_view<const kernels::bf16*> parts;  ///< [n, k + 1]: outputs, ascending expert id
};

/// Routes x [n, d], the sublayer's input. `forced_experts` [n, k], if not empty, replaces the
/// router's choice (weights still come from the row's own scores): a diagnostic for comparisons.
opened_moe open_moe(const context& c, std::uint32_t layer, const moe_weights& weights,
                    kernels::matrix_view<const kernels::bf16> x,
                    kernels::matrix_view<const std::int32_t> forced_experts = {});

/// Runs the experts whose weights are here, and the shared one, over x [n, d] `quantized`.
void run_moe_here(const context& c, const moe_weights& weights, const quantized_rows& x,
                  const opened_moe& opened);

/// The outputs y [choices of `expert`, d] of an expert elsewhere, rows ascending; they outlive
/// close_moe().
void put_outputs(const opened_moe& opened, std::size_t expert,
                 kernels::matrix_view<const kernels::bf16> y);

/// y [n, d], once the outputs of all experts that were chosen are there.
kernels::matrix_view<kernels::bf16> close_moe(const context& c, const opened_moe& opened);

}  // namespace cedar::model
