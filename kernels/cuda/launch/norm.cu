#include "kernels/cuda/device/norm.cuh"

#include "kernels/cuda/launch/cuda_backend.hpp"
#include "kernels/cuda/launch/internal/norms.hpp"

namespace cedar::kernels::cuda {

namespace {

void run_norm(const norm_problem& problem, stream_handle stream) {
  launch({"normalise", {static_cast<unsigned>(problem.x.rows)}, sum_threads, sum_shared_bytes},
         stream, normalise, problem);
}

}  // namespace

void cuda_backend::do_rms_norm(const rms_norm_arguments& arguments) const {
  run_norm(norm_problem_of(arguments, {}), stream_);
}

void cuda_backend::do_rms_norm_quantize(const rms_norm_quantize_arguments& arguments) const {
  run_norm(norm_problem_of(arguments), stream_);
}

}  // namespace cedar::kernels::cuda
