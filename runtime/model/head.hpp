// The end of the model: collapse, final norm, vocabulary projection.
//
// logits = RMSNorm(bf16(sum_i pre_i X_i); norm) * head^T, fp32 products of bf16 values. There is no
// separate head-merging module: the collapse uses the `pre` that the last MoE sublayer produced.
#pragma once

#include "runtime/model/context.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::model {

/// collapsed [n, d] -> logits [n, vocabulary] fp32, in the context's scratch.
kernels::matrix_view<float> run_head(const context& c, const head_weights& weights,
                                     kernels::matrix_view<const kernels::bf16> collapsed);

/// Natural logarithm of softmax(logits)[token], computed in double in ascending token order.
float log_probability(std::span<const float> logits, std::int32_t token);

}  // namespace cedar::model
