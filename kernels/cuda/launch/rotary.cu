#include "kernels/cuda/device/rotary.cuh"

#include "kernels/cuda/launch/cuda_backend.hpp"
#include "kernels/cuda/launch/internal/parts.hpp"

namespace cedar::kernels::cuda {

namespace {

template <class T>
global_array<const T> array_of(std::span<const T> values) {
  return {values.data(), values.size()};
}

}  // namespace

void cuda_backend::do_rope(const rope_arguments& arguments) const {
  const std::size_t heads = arguments.x.cols / arguments.head_dim;
  if (arguments.frequencies.empty()) return;
  launch(parts_shape("rotate_ends", arguments.x.rows, heads * arguments.frequencies.size()),
         stream_, rotate_ends, rows_of(arguments.x), arguments.head_dim,
         array_of(arguments.positions), array_of(arguments.frequencies), arguments.inverse);
}

void cuda_backend::do_rope_2d(const rope_2d_arguments& arguments) const {
  launch(parts_shape("rotate_halves", arguments.x.rows, arguments.x.cols / 2), stream_,
         rotate_halves, rows_of(arguments.x), arguments.head_dim, array_of(arguments.rows),
         array_of(arguments.columns), array_of(arguments.frequencies));
}

}  // namespace cedar::kernels::cuda
