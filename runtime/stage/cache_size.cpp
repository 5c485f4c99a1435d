#include "runtime/stage/cache_size.hpp"

#include "runtime/stage/drafter_sequence.hpp"
#include "runtime/stage/layer_stage.hpp"

namespace cedar::stage {

cache_size cache_of_sequence(const model::model_config& config, const model::schedule& schedule,
                             std::uint32_t positions) {
  const std::uint32_t last = config.layers - 1;
  const memory::page_layout layout = page_layout_of(config, true, true);
  const page_counts pages = pages_needed(schedule, {0, last, 1, positions});
  cache_size out{.pages = pages.whole, .page_bytes = layout.page_bytes()};
  kv_pools pools{{layout, pages.whole}, {{}, 0}, {{}, 0}};
  const std::vector<std::uint32_t>& tapped = config.dspark.target_layers;
  sequence_state state(config, schedule, 0, last, {}, pools, tapped);
  for (std::uint32_t layer = 0; layer <= last; ++layer) {
    out.window_bytes += state.window(layer).bytes();
    if (schedule[layer].mode == model::layer_mode::full && schedule[layer].ratio > 1)
      out.pending_bytes += state.pending(layer).bytes();
  }
  if (config.dspark.blocks == 0) return out;
  const drafter_sequence drafter(config);
  for (std::uint32_t block = 0; block < config.dspark.blocks; ++block)
    out.draft_bytes += drafter.ring(block).bytes();
  out.tap_bytes = drafter.taps().bytes();
  for (const std::uint32_t layer : tapped) out.tap_bytes += state.taps(layer).bytes();
  return out;
}

}  // namespace cedar::stage
