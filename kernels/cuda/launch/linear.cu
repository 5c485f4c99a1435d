#include "kernels/cuda/device/linear.cuh"

#include <algorithm>
#include <string>

#include "kernels/base/check.hpp"
#include "kernels/cuda/launch/cuda_backend.hpp"
#include "kernels/plan/linear_tiles.hpp"
#include "kernels/plan/rows.hpp"

namespace cedar::kernels::cuda {

namespace {

template <weight_format Weights, row_format Rows, class Products>
void multiply(const Products& products, const plan::linear_grid& grid, stream_handle stream) {
  CEDAR_REQUIRE(grid.products <= plan::grid_z_max, std::to_string(grid.products) +
                                                       " products in a launch; a grid has " +
                                                       std::to_string(plan::grid_z_max));
  const grid_extent blocks{grid.output_blocks, grid.row_blocks, grid.products};
  if (grid.few)
    launch({"multiply_few", blocks, few_threads, few_shared_bytes<Weights, Rows>()}, stream,
           multiply_few<Weights, Rows, Products>, products);
  else
    launch({"multiply_many", blocks, many_threads, many_shared_bytes<Weights, Rows>()}, stream,
           multiply_many<Weights, Rows, Products>, products);
}

template <weight_format Weights, row_format Rows, class Output>
void multiply_one(const linear_operands& in, const Output& out, stream_handle stream) {
  multiply<Weights, Rows>(one_product<Output>{{in, out}},
                          plan::choose_linear(in.rows.rows, in.weight.rows), stream);
}

template <weight_format Weights, row_format Rows, class Arguments>
void multiply_all(std::span<const Arguments> products, stream_handle stream) {
  plan::linear_group group;
  for (const Arguments& each : products) group.add(each.y.rows, each.y.cols);
  const plan::linear_grid grid = group.grid();
  if (products.size() > carried_products_max)
    return multiply<Weights, Rows>(listed_products<Arguments>{{products.data(), products.size()}},
                                   grid, stream);
  carried_products<Arguments> carried;
  std::ranges::copy(products, carried.all);
  multiply<Weights, Rows>(carried, grid, stream);
}

half_output rounded(const matrix_view<bf16>& y) {
  return {rows_of(y), {}};
}

linear_operands plain_operands(const matrix_view<const bf16>& weight,
                               const matrix_view<const bf16>& x) {
  return {bytes_of(weight), {}, bytes_of(x), {}, 1, {static_cast<unsigned>(x.cols)}};
}

}  // namespace

void cuda_backend::do_linear_fp8(const linear_fp8_arguments& arguments) const {
  multiply_one<weight_format::e4m3, row_format::e4m3>(operands_of(arguments), rounded(arguments.y),
                                                      stream_);
}

void cuda_backend::do_linear_fp4(const linear_fp4_arguments& arguments) const {
  multiply_one<weight_format::e2m1, row_format::e4m3>(operands_of(arguments), rounded(arguments.y),
                                                      stream_);
}

void cuda_backend::do_linear_fp8_weight_only(
    const linear_fp8_weight_only_arguments& arguments) const {
  multiply_one<weight_format::e4m3, row_format::bf16>(operands_of(arguments), rounded(arguments.y),
                                                      stream_);
}

void cuda_backend::do_linear_bf16(const linear_bf16_arguments& arguments) const {
  multiply_one<weight_format::bf16, row_format::bf16>(
      plain_operands(arguments.weight, arguments.x),
      half_output{rows_of(arguments.y), {arguments.bias.data(), arguments.bias.size()}}, stream_);
}

void cuda_backend::do_linear_f32(const linear_f32_arguments& arguments) const {
  multiply_one<weight_format::bf16, row_format::bf16>(plain_operands(arguments.weight, arguments.x),
                                                      full_output{rows_of(arguments.y)}, stream_);
}

void cuda_backend::do_grouped_linear_fp8(const grouped_linear_fp8_arguments& arguments) const {
  multiply_all<weight_format::e4m3, row_format::e4m3>(arguments.products, stream_);
}

void cuda_backend::do_grouped_linear_fp4(const grouped_linear_fp4_arguments& arguments) const {
  multiply_all<weight_format::e2m1, row_format::e4m3>(arguments.products, stream_);
}

void cuda_backend::do_grouped_linear_fp8_weight_only(
    const grouped_linear_fp8_weight_only_arguments& arguments) const {
  multiply_all<weight_format::e4m3, row_format::bf16>(arguments.products, stream_);
}

}  // namespace cedar::kernels::cuda
