#include "runtime/model/hyper_connection.hpp"

#include <algorithm>

namespace cedar::model {

residual start_streams(kernels::arena& scratch, const model_config& config,
                       kernels::matrix_view<const kernels::bf16> embedded) {
  const std::size_t n = embedded.rows;
  const auto streams = scratch.take<kernels::bf16>(n, std::size_t{config.streams} * config.width);
  const auto pre = scratch.take<float>(n, config.streams);
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t s = 0; s < config.streams; ++s)
      std::ranges::copy(embedded.row(row), streams.row_data(row) + s * config.width);
    std::ranges::fill(pre.row(row), 0.0F);
    pre.row(row)[0] = 1.0F;
  }
  return {streams, pre};
}

sublayer_frame take_frame(kernels::arena& scratch, const model_config& config, std::size_t n) {
  const std::size_t s = config.streams;
  return {scratch.take<kernels::bf16>(n, config.width), take_quantized(scratch, n, config.width),
          scratch.take<float>(n, s), scratch.take<float>(n, s), scratch.take<float>(n, s * s)};
}

kernels::matrix_view<kernels::bf16> sublayer_input(const context& c,
                                                   std::span<const kernels::bf16> norm,
                                                   const residual& in) {
  const auto x = c.scratch.take<kernels::bf16>(in.streams.rows, c.config.width);
  c.kernels.hc_collapse({x, in.streams, in.pre});
  c.kernels.rms_norm({x, x, norm, c.config.rms_epsilon});
  return x;
}

void begin_sublayer(const context& c, const following_sublayer& begun, const residual& in) {
  const auto& [hc, norm, frame] = begun;
  c.kernels.hc_coefficients({in.streams, hc.fn, hc.base, hc.scale, c.config.sinkhorn_iterations,
                             c.config.hc_epsilon, c.config.rms_epsilon, frame.next_pre, frame.post,
                             frame.combine});
  c.kernels.hc_collapse({frame.x, in.streams, in.pre});
  c.kernels.rms_norm_quantize({{frame.x, frame.x, norm, c.config.rms_epsilon},
                               frame.quantized.codes,
                               frame.quantized.scales});
}

void end_sublayer(const context& c, const sublayer_frame& frame, const residual& in,
                  kernels::matrix_view<const kernels::bf16> y, const residual_out& out,
                  const following_sublayer* next) {
  const kernels::hc_expand_arguments expand{out.streams, in.streams, y, frame.post, frame.combine};
  if (next == nullptr)
    c.kernels.hc_expand(expand);
  else
    c.kernels.hc_transition({expand, frame.next_pre, next->norm, c.config.rms_epsilon,
                             next->frame.x, next->frame.quantized.codes,
                             next->frame.quantized.scales, next->hc.fn, next->hc.base,
                             next->hc.scale, c.config.sinkhorn_iterations, c.config.hc_epsilon,
                             next->frame.next_pre, next->frame.post, next->frame.combine});
  for (std::size_t row = 0; row < c.rows(); ++row)
    std::ranges::copy(frame.next_pre.row(row), out.pre.row_data(row));
}

}  // namespace cedar::model
