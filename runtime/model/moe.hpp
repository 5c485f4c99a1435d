// Mixture of experts: router, routed FP4 experts, one shared FP8 expert.
//
// Source: DeepSeek-V4.1-Flash reference code. s = sqrt(softplus(gate x)); experts = top-k of s +
// bias (bias_vl for image rows); weights from the unbiased scores. An expert computes w2 * bf16(w *
// silu(min( w1 x, limit)) * clamp(w3 x)): the route weight goes in before w2. Outputs are bf16,
// added in fp32 by ascending expert id, the shared expert last.
#pragma once

#include "runtime/model/context.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::model {

/// y [n, d] for the sublayer's input x [n, d], also `quantized`. `forced_experts` [n, k], if not
/// empty, replaces the router's choice (weights still come from the row's own scores): a diagnostic
/// for comparisons.
kernels::matrix_view<kernels::bf16> run_moe(
    const context& c, std::uint32_t layer, const moe_weights& weights,
    kernels::matrix_view<const kernels::bf16> x, const quantized_rows& quantized,
    kernels::matrix_view<const std::int32_t> forced_experts = {});

}  // namespace cedar::model
