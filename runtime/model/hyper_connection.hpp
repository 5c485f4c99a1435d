// Single-pass mHC: s residual streams, mixed before and after every sublayer.
//
// A sublayer collapses its incoming streams with the `pre` handed to it by the previous sublayer,
// and computes, from the same streams, the coefficients with which it writes back and the `pre` of
// the next one. The first `pre` of a row is (1, 0, 0, ...).
//
// Where sublayers follow each other, one pass over the streams ends the one and begins the other
// (kernels: hc_transition), so that 10 d elements of activations move per row and sublayer instead
// of more than 20 d.
#pragma once

#include "runtime/model/context.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::model {

/// Residual streams of n rows with the weights that collapse them. Views; whoever made them owns
/// them.
struct residual {
  kernels::matrix_view<const kernels::bf16> streams;  ///< [n, s*d]
  kernels::matrix_view<const float> pre;  ///< [n, s]
};

/// The same, writable: where a sublayer puts its result.
struct residual_out {
  kernels::matrix_view<kernels::bf16> streams;
  kernels::matrix_view<float> pre;
};

/// Where rows enter the model: every stream is the embedded row, pre is (1, 0, 0, ...). `embedded`
/// [n, d]; the result lies in `scratch`.
residual start_streams(kernels::arena& scratch, const model_config& config,
                       kernels::matrix_view<const kernels::bf16> embedded);

/// A sublayer between its two mixings. Views into a scratch that outlives the sublayer.
struct sublayer_frame {
  kernels::matrix_view<kernels::bf16> x;  ///< [n, d] bf16, normalised input of the sublayer
  quantized_rows quantized;  ///< x
  kernels::matrix_view<float> next_pre;  ///< [n, s]
  kernels::matrix_view<float> post;  ///< [n, s]
  kernels::matrix_view<float> combine;  ///< [n, s*s]
};

/// Memory of a frame for n rows.
sublayer_frame take_frame(kernels::arena& scratch, const model_config& config, std::size_t n);

/// The sublayer that reads the streams which another one writes. References that outlive the call.
struct following_sublayer {
  const hyper_connection_weights& hc;
  std::span<const kernels::bf16> norm;  ///< [d]
  sublayer_frame frame;  ///< to be filled; not that of the sublayer before
};

/// Collapse with in.pre, RMSNorm by `norm`: [n, d], in the context's scratch.
kernels::matrix_view<kernels::bf16> sublayer_input(const context& c,
                                                   std::span<const kernels::bf16> norm,
                                                   const residual& in);

/// Fills begun.frame: coefficients from `in`, sublayer_input() and its quantisation.
void begin_sublayer(const context& c, const following_sublayer& begun, const residual& in);

/// Writes streams' = post * y + C^T streams and pre' to `out` (out.streams may alias in.streams);
/// with `next`, begins that sublayer in the same pass.
void end_sublayer(const context& c, const sublayer_frame& frame, const residual& in,
                  kernels::matrix_view<const kernels::bf16> y, const residual_out& out,
                  const following_sublayer* next = nullptr);

}  // namespace cedar::model
