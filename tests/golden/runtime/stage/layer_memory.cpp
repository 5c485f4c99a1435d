#include <algorithm>

#include "tests/golden/runtime/stage/layer_setting.hpp"

namespace cedar::test {

using kernels::bf16;

/// Of a decode step the recorded tensor is the whole ring: slot = position mod W. The layer's own
/// has some slots more.
void layer_trace::compare_window(const setting& with, const traced_call& at,
                                 layer_deviation& out) const {
  const model::model_config& config = source_->config();
  const memory::position_ring& ring = with.sequence->window(with.layer);
  kernels::matrix_buffer<std::byte> packed(config.window, ring.row_bytes());
  const std::uint32_t end = at.first + at.count;
  for (std::uint32_t position = end - config.window; position < end; ++position)
    std::copy_n(ring.row(position), ring.row_bytes(),
                packed.view().row_data(position % config.window));
  kernels::matrix_buffer<bf16> entries(config.window, config.head_dim);
  backend_.unpack_entries({packed.view(), entries.view(), model::window_entry_format});
  compare(with.layer, at, "attn.window_kv", as_tapped(std::as_const(entries).view()), out);
}

/// The pools in force, chosen by this layer or taken from the one that did, as positions.
void layer_trace::compare_candidates(const setting& with, const traced_call& at,
                                     std::span<const kernels::candidate_pool> pools,
                                     layer_deviation& out) const {
  const std::string recorded = at.layer(with.layer) + "index.candidates";
  if (!trace_.has(recorded)) return;
  const auto expected = trace_.matrix<std::uint8_t>(recorded);
  out.compared.insert(recorded);
  for (std::size_t row = 0; row < at.count; ++row) {
    std::vector<std::uint8_t> mine(expected.cols);
    for (const std::uint32_t block : pools[row].blocks) {
      const std::size_t first = std::size_t{block} * pools[row].block_size;
      const std::size_t end = std::min(first + pools[row].block_size, mine.size());
      for (std::size_t position = first; position < end; ++position) mine[position] = 1;
    }
    if (!std::ranges::equal(mine, expected.row(row))) ++out.wrong_choices;
  }
}

}  // namespace cedar::test
