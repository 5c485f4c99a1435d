#include "kernels/cuda/device/pooling.cuh"

#include "kernels/cuda/launch/cuda_backend.hpp"
#include "kernels/cuda/launch/internal/parts.hpp"

namespace cedar::kernels::cuda {

void cuda_backend::do_compressor_pool(const compressor_pool_arguments& arguments) const {
  launch(parts_shape("pool", arguments.z.rows, arguments.z.cols), stream_, pool,
         rows_of(arguments.z), rows_of(arguments.values), rows_of(arguments.gates),
         static_cast<unsigned>(arguments.ratio));
}

void cuda_backend::do_gelu(const gelu_arguments& arguments) const {
  launch(parts_shape("apply_gelu", arguments.y.rows, arguments.y.cols), stream_, apply_gelu,
         rows_of(arguments.y), rows_of(arguments.x));
}

void cuda_backend::do_add(const add_arguments& arguments) const {
  launch(parts_shape("add_rows", arguments.y.rows, arguments.y.cols), stream_, add_rows,
         rows_of(arguments.y), rows_of(arguments.a), rows_of(arguments.b));
}

}  // namespace cedar::kernels::cuda
