#include "kernels/cuda/device/norm.cuh"

#include "kernels/cuda/launch/cuda_backend.hpp"

namespace cedar::kernels::cuda {

namespace {

void run_norm(const rms_norm_arguments& norm, const quantised_rows& to, stream_handle stream) {
  const matrix_view<const bf16> weight(norm.weight.data(), 1, norm.weight.size());
  const norm_problem problem{rows_of(norm.y), rows_of(norm.x), rows_of(weight), norm.epsilon, to};
  const auto rows = static_cast<unsigned>(norm.x.rows);
  launch({"normalise", {rows}, sum_threads, sum_shared_bytes}, stream, normalise, problem);
}

}  // namespace

void cuda_backend::do_rms_norm(const rms_norm_arguments& arguments) const {
  run_norm(arguments, {}, stream_);
}

void cuda_backend::do_rms_norm_quantize(const rms_norm_quantize_arguments& arguments) const {
  run_norm(arguments.norm, {rows_of(arguments.codes), rows_of(arguments.scales)}, stream_);
}

}  // namespace cedar::kernels::cuda
