#include "tests/golden/runtime/stage/layer_trace.hpp"

#include <algorithm>
#include <stdexcept>

#include "runtime/model/compressor.hpp"
#include "runtime/model/image_tokens.hpp"
#include "runtime/stage/weight_loader.hpp"
#include "tests/golden/runtime/stage/layer_setting.hpp"

namespace cedar::test {

using kernels::bf16;

layer_trace::layer_trace(const std::string& checkpoint, const kernels::backend& backend)
    : backend_(backend),
      source_(unwrap(
          stage::model_source::open(std::string(CEDAR_TEST_DATA) + "/golden/" + checkpoint))),
      checkpoint_(checkpoint),
      trace_(trace_path(checkpoint)),
      calls_(traced_calls(trace_)) {}

layer_deviation layer_trace::run(std::uint32_t layer, const mistake& with) const {
  model::model_config config = source_->config();
  with.in_config(config);
  model::layer_weights weights = unwrap(
      stage::load_layer(source_->checkpoint(), source_->config(), source_->schedule(), layer));
  weights.engram.reset();  // recorded inputs are those after Engram
  with.in_weights(weights);
  setting at(layer, std::move(config), std::move(weights), with.all_candidates);
  at.no_images = with.no_images;
  layer_deviation out;
  for (const traced_call& one : calls_) run_call(at, one, out);
  return out;
}

/// Recorded global KV of an owner that is another layer, as far as this call sees it.
void layer_trace::fill_owner(const setting& with, const traced_call& at) const {
  const auto owner = with.schedule[with.layer].owner;
  if (!owner || *owner == with.layer) return;
  const std::string prefix = at.layer(*owner);
  const auto main = trace_.matrix<bf16>(prefix + "attn.compress_kv");
  const auto keys = trace_.matrix<bf16>(prefix + "index.k");
  const std::size_t known = with.sequence->global(*owner).written();
  kernels::matrix_buffer<std::byte> packed_main(main.rows - known,
                                                with.pools->whole.layout().main_entry_bytes);
  kernels::matrix_buffer<std::byte> packed_keys(main.rows - known,
                                                with.pools->whole.layout().index_entry_bytes);
  if (main.rows == known) return;
  backend_.pack_entries(
      {main.rows_from(known, main.rows - known), packed_main.view(), model::global_entry_format});
  backend_.pack_entries(
      {keys.rows_from(known, keys.rows - known), packed_keys.view(), model::index_entry_format});
  const auto kept = with.sequence->global(*owner).append(packed_main.view(), packed_keys.view());
  if (!kept) throw std::runtime_error(kept.error().message);
}

stage::selection_overrides layer_trace::recorded_choice(const setting& with,
                                                        const traced_call& at) const {
  stage::selection_overrides out;
  const auto source = with.schedule[with.layer].index_source;
  if (!source || *source == with.layer) return out;
  const auto all = trace_.integers(at.layer(*source) + "index.topk");
  stage::selection& rows = out.positions[*source];
  rows.resize(at.count);
  const std::size_t width = all.size() / at.count;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] >= 0) rows[i / width].push_back(static_cast<std::uint32_t>(all[i]));
  return out;
}

std::vector<kernels::candidate_pool> layer_trace::recorded_candidates(const setting& with,
                                                                      const traced_call& at) const {
  std::vector<kernels::candidate_pool> pools(at.count);
  if (!with.schedule[with.layer].uses_candidates) return pools;
  const auto mask =
      trace_.matrix<std::uint8_t>(at.layer(*with.config.candidate_source) + "index.candidates");
  const std::uint32_t block = with.config.candidate_block_size;
  for (std::size_t row = 0; row < at.count; ++row) {
    pools[row].block_size = block;
    for (std::uint32_t b = 0; b * block < mask.cols; ++b) {
      const auto members =
          mask.row(row).subspan(b * block, std::min<std::size_t>(block, mask.cols - b * block));
      if (with.all_candidates || std::ranges::any_of(members, [](auto m) { return m != 0; }))
        pools[row].blocks.push_back(b);
    }
  }
  return pools;
}

layer_trace::layer_rows layer_trace::run_call(const setting& with, const traced_call& at,
                                              layer_deviation& out) const {
  fill_owner(with, at);
  stage::step_rows rows;
  rows.spans = {{{request_id{1}, at.first, at.count, at.count}, 0, with.sequence.get()}};
  for (std::uint32_t i = 0; i < at.count; ++i)
    rows.positions.push_back(static_cast<std::int32_t>(at.first + i));
  rows.image_rows = model::image_flags(with.config, at.tokens);
  if (with.no_images) rows.image_rows.assign(at.count, 0);

  const std::string prefix = at.layer(with.layer);
  std::vector<std::string> wanted{
      "L*.hc_attn.pre", "L*.hc_attn.post",   "L*.hc_attn.comb",  "L*.attn.in",
      "L*.attn.q",      "L*.attn.qr",        "L*.attn.latent",   "L*.attn.compress_kv",
      "L*.index.q",     "L*.index.k",        "L*.index.weights", "L*.index.score",
      "L*.index.topk",  "L*.attn.o_rotated", "L*.attn.out",      "L*.mid.stream",
      "L*.hc_ffn.pre",  "L*.hc_ffn.post",    "L*.hc_ffn.comb",   "L*.ffn.in",
      "L*.gate.scores", "L*.gate.indices",   "L*.gate.weights",  "L*.ffn.out",
      "L*.out.stream"};
  if (at.first == 0) wanted.push_back("L*.attn.window_kv");  // then the whole ring is recorded
  const model::taps probes(wanted, [&](const model::tapped_tensor& tensor) {
    compare(with.layer, at, tensor.name.substr(tensor.name.find('.') + 1), tensor, out);
  });
  kernels::arena scratch;
  const model::context c{backend_, with.config,    with.rotary,    scratch,
                         probes,   rows.positions, rows.image_rows};
  const auto streams = trace_.matrix<bf16>(prefix + "in.stream");
  const model::residual in{streams, trace_.matrix<float>(prefix + "in.pre_mix")};
  layer_rows made{{at.count, streams.cols}, {at.count, with.config.streams}};
  stage::step_selections selections;
  selections.candidates = recorded_candidates(with, at);
  const stage::layer_runner runner(with.config, with.schedule, with.layer, with.weights);
  const model::residual_out to{made.streams.view(), made.pre.view()};
  const auto overrides = recorded_choice(with, at);
  const auto attention = model::take_frame(scratch, with.config, at.count);
  const auto moe = model::take_frame(scratch, with.config, at.count);
  const model::residual opened = runner.open(c, rows, in, to, attention);
  const auto half =
      runner.begin_attention(c, rows, selections, overrides, opened, attention, false);
  if (!half) throw std::runtime_error(half.error().message);
  runner.end_attention(c, rows, selections, *half, to, moe);
  if (at.first > 0) compare_window(with, at, out);
  if (!with.all_candidates) compare_candidates(with, at, selections.candidates, out);
  // The second half starts from the recorded streams where the trace has them.
  model::residual mid{to.streams, to.pre};
  if (trace_.has(prefix + "mid.stream")) {
    mid = {trace_.matrix<bf16>(prefix + "mid.stream"),
           trace_.matrix<float>(prefix + "hc_attn.pre")};
    model::begin_sublayer(c, model::sublayer_of(with.weights.moe, moe), mid);
  }
  runner.run_moe(c, overrides, moe, mid, to, nullptr);
  return made;
}

void layer_trace::compare(std::uint32_t layer, const traced_call& at, const std::string& name,
                          const model::tapped_tensor& actual, layer_deviation& out) const {
  const std::string prefix = at.layer(layer);
  std::string recorded = prefix + name;
  if (name == "out.stream" && !trace_.has(recorded)) recorded = at.layer(layer + 1) + "in.stream";
  const bool exact_input = name.starts_with("hc_attn.") ||
                           (name.starts_with("hc_ffn.") && trace_.has(prefix + "mid.stream"));
  keep_deviation(trace_, recorded, name, exact_input, actual, out);
}

}  // namespace cedar::test
