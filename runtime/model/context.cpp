#include "runtime/model/context.hpp"

namespace cedar::model {

quantized_rows quantize(const context& c, kernels::matrix_view<const kernels::bf16> x) {
  quantized_rows out{c.scratch.take<std::uint8_t>(x.rows, x.cols),
                     c.scratch.take<std::uint8_t>(x.rows, x.cols / 32)};
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
