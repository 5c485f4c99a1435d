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

sublayer_frame begin_sublayer(const context& c, const hyper_connection_weights& hc,
                              std::span<const kernels::bf16> norm, const residual& in) {
  const std::size_t n = c.rows();
  const std::size_t s = c.config.streams;
  sublayer_frame frame{c.scratch.take<kernels::bf16>(n, c.config.width),
                       c.scratch.take<float>(n, s), c.scratch.take<float>(n, s),
                       c.scratch.take<float>(n, s * s)};
  c.kernels.hc_coefficients({in.streams, hc.fn, hc.base, hc.scale, c.config.sinkhorn_iterations,
                             c.config.hc_epsilon, c.config.rms_epsilon, frame.next_pre, frame.post,
                             frame.combine});
  const auto collapsed = c.scratch.take<kernels::bf16>(n, c.config.width);
  c.kernels.hc_collapse({collapsed, in.streams, in.pre});
  c.kernels.rms_norm({frame.x, collapsed, norm, c.config.rms_epsilon});
  return frame;
}

void end_sublayer(const context& c, const sublayer_frame& frame, const residual& in,
                  kernels::matrix_view<const kernels::bf16> y, const residual_out& out) {
  c.kernels.hc_expand({out.streams, in.streams, y, frame.post, frame.combine});
  for (std::size_t row = 0; row < c.rows(); ++row)
    std::ranges::copy(frame.next_pre.row(row), out.pre.row_data(row));
}

}  // namespace cedar::model
