// The vision transformer (DeepSeek-V4.1-Flash reference code, inference/vision.py): patches to
// features. All patches of one image see each other; images never do.
//
//   x = patches * W + b
//   per block: x += wo * attention(rope(q), rope(k), v), (q, k, v) = wqkv * norm1(x)
//              x += w2 * bf16(bf16(silu(g)) * u),        (g, u) = w1 * norm2(x)
//   norm(x)
// Weights and activations bf16, sums fp32 with one rounding; norms with epsilon 1e-6; 2-D rotary
// positions on q and k.
#pragma once

#include "kernels/base/arena.hpp"
#include "kernels/ops/backend.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/taps.hpp"
#include "runtime/vision/weights.hpp"

namespace cedar::vision {

/// What the tower's computation needs besides weights and rows; references are valid for the call.
struct context {
  const kernels::backend& kernels;
  const model::vision_config& config;
  kernels::arena& scratch;
  const model::taps& probes;
};

/// Rows and columns of patches.
struct patch_grid {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;

  std::size_t count() const noexcept { return std::size_t{rows} * columns; }
};

/// x [n, w] from patches [n, 3 * patch * patch] (image::write_patches), n = grid.count(). Offers
/// taps "vision.patch_embed", "vision.block0" and so on, "vision.encoder".
void encode(const context& c, const encoder_weights& weights, const patch_grid& grid,
            matrix_view<const bf16> patches, matrix_view<bf16> features);

/// One block, in place: x [n, w].
void apply_block(const context& c, const block_weights& weights, const patch_grid& grid,
                 matrix_view<bf16> x);

}  // namespace cedar::vision
