#include "kernels/cuda/device/streams.cuh"

#include <string>

#include "kernels/base/check.hpp"
#include "kernels/cuda/launch/cuda_backend.hpp"
#include "kernels/cuda/launch/internal/parts.hpp"

namespace cedar::kernels::cuda {

namespace {

void require_streams(std::size_t count) {
  CEDAR_REQUIRE(count <= streams_max, std::to_string(count) + " residual streams; kernels mix " +
                                          std::to_string(streams_max));
}

}  // namespace

void cuda_backend::do_hc_coefficients(const hc_coefficients_arguments& arguments) const {
  require_streams(arguments.pre.cols);
  const coefficients_problem problem{rows_of(arguments.streams),
                                     rows_of(arguments.fn),
                                     {arguments.base.data(), arguments.base.size()},
                                     {arguments.scale.data(), arguments.scale.size()},
                                     static_cast<unsigned>(arguments.iterations),
                                     arguments.epsilon,
                                     arguments.rms_epsilon,
                                     rows_of(arguments.pre),
                                     rows_of(arguments.post),
                                     rows_of(arguments.combine)};
  const auto rows = static_cast<unsigned>(arguments.streams.rows);
  const auto outputs = static_cast<unsigned>(arguments.fn.rows);
  launch({"mix_products", {rows, outputs}, sum_threads, sum_shared_bytes}, stream_, mix_products,
         problem);
  launch({"mix_coefficients", {rows}, sum_threads, sum_shared_bytes}, stream_, mix_coefficients,
         problem);
}

void cuda_backend::do_hc_collapse(const hc_collapse_arguments& arguments) const {
  launch(parts_shape("collapse", arguments.y.rows, arguments.y.cols), stream_, collapse,
         rows_of(arguments.y), rows_of(arguments.streams), rows_of(arguments.pre));
}

void cuda_backend::do_hc_expand(const hc_expand_arguments& arguments) const {
  require_streams(arguments.post.cols);
  launch(parts_shape("expand", arguments.y.rows, arguments.y.cols), stream_, expand,
         rows_of(arguments.out), rows_of(arguments.streams), rows_of(arguments.y),
         rows_of(arguments.post), rows_of(arguments.combine));
}

void cuda_backend::do_hc_transition(const hc_transition_arguments& arguments) const {
  do_hc_expand(arguments.expand);
  do_hc_collapse(arguments.collapse_part());
  do_rms_norm_quantize(arguments.norm_part());
  do_hc_coefficients(arguments.coefficients_part());
}

}  // namespace cedar::kernels::cuda
