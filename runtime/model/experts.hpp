// Routed experts over the rows that chose them, wherever those rows come from: a layer of the same
// process, or another process that holds the layer.
//
// Source: DeepSeek-V4.1-Flash reference code. An expert computes w2 * bf16(w * silu(min(w1 x,
// limit)) * clamp(w3 x)): the route weight goes in before w2. A row's output does not depend on the
// other rows of a call, so whoever computes an expert gives the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/model/context.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::model {

/// What experts need of a context: no positions, no probes.
struct expert_context {
  const kernels::backend& kernels;
  const model_config& config;
  kernels::arena& scratch;
};

/// The choices of rows by expert: those of expert e are [begins[e], begins[e + 1]), rows ascending.
/// Views into a scratch.
struct expert_groups {
  std::span<const std::uint32_t> begins;  ///< [E + 1]
  std::span<const std::uint32_t> rows;  ///< [choices]
  std::span<const float> weights;  ///< [choices], of the routes

  std::size_t experts() const noexcept { return begins.size() - 1; }
  std::size_t size_of(std::size_t expert) const noexcept {
    return begins[expert + 1] - begins[expert];
  }
};

/// Groups `chosen` [n, k] with their route `weights` [n, k]: ids below `experts`, those of a row
/// different; a negative one is no choice. By counting: work in proportion to n * k + experts.
expert_groups group_by_expert(kernels::arena& scratch, std::size_t experts,
                              kernels::matrix_view<const std::int32_t> chosen,
                              kernels::matrix_view<const float> weights);

/// Choices of the experts whose weights are `here`.
std::size_t choices_of(std::span<const expert_weights> here, const expert_groups& groups);

/// Runs every expert of `here` that some row of x [n, d] chose, each once over all its rows.
/// Outputs y [choices_of(here), d] lie by ascending expert, then by ascending row. Experts whose
/// weights are elsewhere are left out.
void run_experts(const expert_context& c, std::span<const expert_weights> here,
                 const kernels::fp8_rows_view& x, const expert_groups& groups,
                 kernels::matrix_view<kernels::bf16> y);

/// Segments of w2, which may be split by columns.
std::size_t hidden_segments(const model_config& config) noexcept;

/// The projections of an expert before its activation: [m, inner] each.
struct expert_halves {
  kernels::matrix_view<kernels::bf16> gate;
  kernels::matrix_view<kernels::bf16> up;
};
expert_halves take_halves(const expert_context& c, std::size_t m);

/// bf16(w * silu(gate) * up), quantised; `route_weights` [m], or empty: without.
quantized_rows activate(const expert_context& c, const expert_halves& of,
                        std::span<const float> route_weights);

}  // namespace cedar::model
