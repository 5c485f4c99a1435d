#include <algorithm>

#include "runtime/stage/row_layout.hpp"
#include "runtime/stage/weight_loader.hpp"
#include "tests/golden/runtime/stage/layer_setting.hpp"

namespace cedar::test {

using kernels::bf16;

layer_deviation layer_trace::run_handover() const {
  const golden_file handed(traced_prompt_path(checkpoint_));
  layer_deviation out;
  hand_over(handed, out);
  take_over(handed, out);
  return out;
}

/// Rows as they leave the encoder.
void layer_trace::hand_over(const golden_file& handed, layer_deviation& out) const {
  const std::uint32_t layer = source_->schedule().decoder_begin() - 1;
  auto weights = unwrap(
      stage::load_layer(source_->checkpoint(), source_->config(), source_->schedule(), layer));
  weights.engram.reset();
  const setting at(layer, source_->config(), std::move(weights), false);
  const auto made = run_call(at, calls_.front(), out);
  keep_deviation(handed, "h20.stream", "h20.stream", false,
                 as_tapped(std::as_const(made.streams).view()), out);
  keep_deviation(handed, "h20.pre_mix", "h20.pre_mix",
                 trace_.has(calls_.front().layer(layer) + "mid.stream"),
                 as_tapped(std::as_const(made.pre).view()), out);
}

/// What the decoder makes of all of them.
void layer_trace::take_over(const golden_file& handed, layer_deviation& out) const {
  const model::model_config& config = source_->config();
  const std::uint32_t layer = source_->schedule().decoder_begin();
  const traced_call& prompt = calls_.front();
  const model::residual in{handed.matrix<bf16>("h20.stream"), handed.matrix<float>("h20.pre_mix")};

  flow::step_table table;
  table.step = step_id{1};
  table.tokens = prompt.tokens;
  table.spans = {{request_id{1}, 0, prompt.count, prompt.count, prompt.count - config.window}};
  kernels::buffer memory(std::size_t{prompt.count} *
                         stage::row_bytes(flow::row_kind::activation, config));
  const auto planes = stage::planes_of(memory, flow::row_kind::activation, prompt.count, config);
  std::ranges::copy(std::span(in.streams.data, prompt.count * in.streams.cols),
                    planes.streams.data);
  std::ranges::copy(std::span(in.pre.data, prompt.count * in.pre.cols), planes.pre.data);
  std::ranges::fill(planes.image_rows, 0);
  const auto decoder = unwrap(source_->make_layers(backend_, {layer, layer, 1, prompt.count + 1}));
  const std::string prefix = "L" + std::to_string(layer) + ".";
  const model::taps probes(
      std::vector<std::string>{prefix + "attn.compress_kv", prefix + "index.k"},
      [&](const model::tapped_tensor& tensor) {
        const bool keys = tensor.name.ends_with("index.k");
        const std::string name = keys ? "h20.index_k" : "h20.global_kv";
        keep_deviation(handed, name, name, false, tensor, out);
      });
  unwrap(decoder->begin(
      {table,
       stage::make_block(flow::row_kind::activation, table, config, std::move(memory)),
       {},
       {},
       {}},
      probes));

  const auto weights =
      unwrap(stage::load_layer(source_->checkpoint(), config, source_->schedule(), layer));
  const model::taps nothing;
  const auto rotary = model::make_rotary(config);
  kernels::arena scratch;
  const model::context c{backend_, config, rotary, scratch, nothing, {}, {}};
  keep_deviation(handed, "h20.attn_in", "h20.attn_in", false,
                 as_tapped(model::sublayer_input(c, weights.attention.norm, in)), out);
}

}  // namespace cedar::test
