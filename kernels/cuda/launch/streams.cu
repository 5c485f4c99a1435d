#include "kernels/cuda/device/streams.cuh"

#include <string>

#include "kernels/base/check.hpp"
#include "kernels/cuda/launch/cuda_backend.hpp"
#include "kernels/cuda/launch/internal/norms.hpp"
#include "kernels/cuda/launch/internal/parts.hpp"

namespace cedar::kernels::cuda {

namespace {

void require_streams(std::size_t count) {
  CEDAR_REQUIRE(count <= streams_max, std::to_string(count) + " residual streams; kernels mix " +
                                          std::to_string(streams_max));
}

coefficients_problem problem_of(const hc_coefficients_arguments& arguments) {
  return {rows_of(arguments.streams),
          rows_of(arguments.fn),
          {arguments.base.data(), arguments.base.size()},
          {arguments.scale.data(), arguments.scale.size()},
          static_cast<unsigned>(arguments.iterations),
          arguments.epsilon,
          arguments.rms_epsilon,
          rows_of(arguments.pre),
          rows_of(arguments.post),
          rows_of(arguments.combine)};
}

expand_problem problem_of(const hc_expand_arguments& arguments) {
  return {rows_of(arguments.out), rows_of(arguments.streams), rows_of(arguments.y),
          rows_of(arguments.post), rows_of(arguments.combine)};
}

/// For a kernel with `blocks` blocks of a sum for each row.
launch_shape sums_shape(const char* kernel, std::size_t rows, std::size_t blocks) {
  return {kernel,
          {static_cast<unsigned>(rows), static_cast<unsigned>(blocks)},
          sum_threads,
          sum_shared_bytes};
}

}  // namespace

void cuda_backend::do_hc_coefficients(const hc_coefficients_arguments& arguments) const {
  require_streams(arguments.pre.cols);
  const coefficients_problem problem = problem_of(arguments);
  const std::size_t rows = arguments.streams.rows;
  launch(sums_shape("mix_products", rows, arguments.fn.rows), stream_, mix_products, problem);
  launch(sums_shape("mix_coefficients", rows, 1), stream_, mix_coefficients, problem);
}

void cuda_backend::do_hc_collapse(const hc_collapse_arguments& arguments) const {
  launch(parts_shape("collapse", arguments.y.rows, arguments.y.cols), stream_, collapse,
         rows_of(arguments.y), rows_of(arguments.streams), rows_of(arguments.pre));
}

void cuda_backend::do_hc_expand(const hc_expand_arguments& arguments) const {
  require_streams(arguments.post.cols);
  launch(parts_shape("expand", arguments.y.rows, arguments.y.cols), stream_, expand,
         problem_of(arguments));
}

void cuda_backend::do_hc_transition(const hc_transition_arguments& arguments) const {
  require_streams(arguments.pre.cols);
  const coefficients_problem problem = problem_of(arguments.coefficients_part());
  const std::size_t rows = arguments.x.rows;
  launch(parts_shape("expand_and_collapse", rows, arguments.x.cols), stream_, expand_and_collapse,
         problem_of(arguments.expand), rows_of(arguments.x), rows_of(arguments.pre));
  launch(sums_shape("normalise_and_mix", rows, arguments.fn.rows + 1), stream_, normalise_and_mix,
         norm_problem_of(arguments.norm_part()), problem);
  launch(sums_shape("mix_coefficients", rows, 1), stream_, mix_coefficients, problem);
}

}  // namespace cedar::kernels::cuda
