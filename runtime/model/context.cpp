#include "runtime/model/context.hpp"

namespace cedar::model {

quantized_rows take_quantized(kernels::arena& scratch, std::size_t n, std::size_t k) {
  return {scratch.take<std::uint8_t>(n, k), scratch.take<std::uint8_t>(n, k / 32)};
}

quantized_rows quantize(const context& c, kernels::matrix_view<const kernels::bf16> x) {
  const quantized_rows out = take_quantized(c.scratch, x.rows, x.cols);
  c.kernels.quantize_fp8({x, out.codes, out.scales});
  return out;
}

void offer_entries(const context& c, std::uint32_t layer, const char* name,
                   kernels::matrix_view<const std::byte> entries, kernels::entry_format format,
                   std::size_t width) {
  if (!c.probes.wants(layer, name)) return;
  const auto x = c.scratch.take<kernels::bf16>(entries.rows, width);
  c.kernels.unpack_entries({entries, x, format});
  c.probes.offer(layer, name, x);
}

}  // namespace cedar::model
