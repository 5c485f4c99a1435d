// One layer with the state that its rows leave behind, as layer_trace runs it.
#pragma once

#include <memory>

#include "runtime/stage/layer_runner.hpp"
#include "tests/golden/runtime/stage/layer_trace.hpp"

namespace cedar::test {

struct layer_trace::setting {
  std::uint32_t layer = 0;
  model::model_config config;
  model::schedule schedule;
  model::layer_weights weights;
  model::rotary_frequencies rotary;
  bool all_candidates = false;
  bool no_images = false;
  std::unique_ptr<stage::kv_pools> pools;
  std::unique_ptr<stage::sequence_state> sequence;

  setting(std::uint32_t at, model::model_config changed, model::layer_weights loaded, bool every)
      : layer(at),
        config(std::move(changed)),
        schedule(config),
        weights(std::move(loaded)),
        rotary(model::make_rotary(config)),
        all_candidates(every) {
    const memory::page_layout layout{
        16, kernels::entry_bytes(model::global_entry_format, config.head_dim),
        kernels::entry_bytes(model::index_entry_format, config.index_head_dim)};
    pools.reset(new stage::kv_pools{{layout, 64}, {layout, 0}, {layout, 0}});
    const std::uint32_t first = schedule[layer].owner.value_or(layer);
    sequence = std::make_unique<stage::sequence_state>(config, schedule, first, layer,
                                                       model::shared_state{}, *pools);
  }
};

}  // namespace cedar::test
