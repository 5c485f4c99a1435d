#include "kernels/cuda/device/linear.cuh"

#include "kernels/cuda/launch/cuda_backend.hpp"
#include "kernels/plan/linear_tiles.hpp"

namespace cedar::kernels::cuda {

namespace {

constexpr unsigned outputs_per_fp8_scale = 32;

template <weight_format Weights, row_format Rows, class Output>
void multiply(const linear_operands& in, const Output& out, stream_handle stream) {
  const plan::linear_grid grid = plan::choose_linear(in.rows.rows, in.weight.rows);
  const grid_extent blocks{grid.output_blocks, grid.row_blocks};
  if (grid.few)
    launch({"multiply_few", blocks, few_threads, few_shared_bytes<Weights, Rows>()}, stream,
           multiply_few<Weights, Rows, Output>, in, out);
  else
    launch({"multiply_many", blocks, many_threads, many_shared_bytes<Weights, Rows>()}, stream,
           multiply_many<Weights, Rows, Output>, in, out);
}

sum_order order_of(std::size_t columns, std::size_t segments = 1) {
  return {static_cast<unsigned>(columns), static_cast<unsigned>(segments)};
}

linear_operands plain_operands(const matrix_view<const bf16>& weight,
                               const matrix_view<const bf16>& x) {
  return {bytes_of(weight), {}, bytes_of(x), {}, 1, order_of(x.cols)};
}

}  // namespace

void cuda_backend::do_linear_fp8(const linear_fp8_arguments& arguments) const {
  const linear_operands in{bytes_of(arguments.weight.codes),
                           bytes_of(arguments.weight.scales),
                           bytes_of(arguments.x.codes),
                           bytes_of(arguments.x.scales),
                           outputs_per_fp8_scale,
                           order_of(arguments.x.codes.cols, arguments.segments)};
  multiply<weight_format::e4m3, row_format::e4m3>(in, half_output{rows_of(arguments.y), {}},
                                                  stream_);
}

void cuda_backend::do_linear_fp4(const linear_fp4_arguments& arguments) const {
  const linear_operands in{bytes_of(arguments.weight.codes),
                           bytes_of(arguments.weight.scales),
                           bytes_of(arguments.x.codes),
                           bytes_of(arguments.x.scales),
                           1,
                           order_of(arguments.x.codes.cols, arguments.segments)};
  multiply<weight_format::e2m1, row_format::e4m3>(in, half_output{rows_of(arguments.y), {}},
                                                  stream_);
}

void cuda_backend::do_linear_fp8_weight_only(
    const linear_fp8_weight_only_arguments& arguments) const {
  const linear_operands in{bytes_of(arguments.weight.codes),
                           bytes_of(arguments.weight.scales),
                           bytes_of(arguments.x),
                           {},
                           outputs_per_fp8_scale,
                           order_of(arguments.x.cols)};
  multiply<weight_format::e4m3, row_format::bf16>(in, half_output{rows_of(arguments.y), {}},
                                                  stream_);
}

void cuda_backend::do_linear_bf16(const linear_bf16_arguments& arguments) const {
  multiply<weight_format::bf16, row_format::bf16>(
      plain_operands(arguments.weight, arguments.x),
      half_output{rows_of(arguments.y), {arguments.bias.data(), arguments.bias.size()}}, stream_);
}

void cuda_backend::do_linear_f32(const linear_f32_arguments& arguments) const {
  multiply<weight_format::bf16, row_format::bf16>(plain_operands(arguments.weight, arguments.x),
                                                  full_output{rows_of(arguments.y)}, stream_);
}

}  // namespace cedar::kernels::cuda
