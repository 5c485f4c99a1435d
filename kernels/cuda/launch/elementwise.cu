#include "kernels/cuda/device/elementwise.cuh"

#include "kernels/cuda/launch/cuda_backend.hpp"

namespace cedar::kernels::cuda {

namespace {

/// For a kernel with a thread for each of `items` parts of a row.
launch_shape shape_of(const char* kernel, std::size_t rows, unsigned items) {
  const unsigned blocks = (items + elementwise_threads - 1) / elementwise_threads;
  return {kernel, {static_cast<unsigned>(rows), blocks}, elementwise_threads, 0};
}

}  // namespace

void cuda_backend::do_quantize_fp8(const quantize_fp8_arguments& arguments) const {
  launch(shape_of("quantise", arguments.x.rows, pieces_of(arguments.x.cols)), stream_, quantise,
         rows_of(arguments.x), quantised_rows{rows_of(arguments.codes), rows_of(arguments.scales)});
}

void cuda_backend::do_swiglu(const swiglu_arguments& arguments) const {
  const swiglu_problem problem{rows_of(arguments.gate),
                               rows_of(arguments.up),
                               {arguments.route_weights.data(), arguments.route_weights.size()},
                               arguments.limit,
                               arguments.round_silu,
                               rows_of(arguments.y),
                               {}};
  launch(shape_of("activate", arguments.y.rows, pieces_of(arguments.y.cols)), stream_, activate,
         problem);
}

void cuda_backend::do_swiglu_quantize(const swiglu_quantize_arguments& arguments) const {
  const swiglu_problem problem{rows_of(arguments.gate),
                               rows_of(arguments.up),
                               {arguments.route_weights.data(), arguments.route_weights.size()},
                               arguments.limit,
                               false,
                               {},
                               {rows_of(arguments.codes), rows_of(arguments.scales)}};
  launch(shape_of("activate", arguments.gate.rows, pieces_of(arguments.gate.cols)), stream_,
         activate, problem);
}

void cuda_backend::do_moe_combine(const moe_combine_arguments& arguments) const {
  launch(shape_of("combine", arguments.y.rows, pieces_of(arguments.y.cols)), stream_, combine,
         rows_of(arguments.y),
         global_array<const bf16* const>{arguments.parts.data(), arguments.parts.size()},
         arguments.parts_per_row);
}

void cuda_backend::do_gate_scores(const gate_scores_arguments& arguments) const {
  launch(
      shape_of("score_gates", arguments.scores.rows, static_cast<unsigned>(arguments.scores.cols)),
      stream_, score_gates, rows_of(arguments.scores));
}

}  // namespace cedar::kernels::cuda
