#include "runtime/model/context.hpp"

namespace cedar::model {

quantized_rows quantize(const context& c, kernels::matrix_view<const kernels::bf16> x) {
  quantized_rows out{c.scratch.take<std::uint8_t>(x.rows, x.cols),
                     c.scratch.take<std::uint8_t>(x.rows, x.cols / 32)};
  c.kernels.quantize_fp8({x, out.codes, out.scales});
  return out;
}

}  // namespace cedar::model
