#include "tests/golden/runtime/stage/drafter_trace.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "runtime/model/attention.hpp"
#include "runtime/stage/weight_loader.hpp"

namespace cedar::test {

using kernels::bf16;
using kernels::matrix_buffer;

namespace {

constexpr request_id one{1};

}  // namespace

drafter_trace::drafter_trace(const std::string& checkpoint, const kernels::backend& backend)
    : backend_(backend),
      source_(unwrap(
          stage::model_source::open(std::string(CEDAR_TEST_DATA) + "/golden/" + checkpoint))),
      trace_(trace_path(checkpoint)),
      calls_(traced_calls(trace_)) {}

std::vector<drafter_trace::moment> drafter_trace::moments() const {
  std::vector<moment> out;
  for (const traced_call& call : std::span(calls_).subspan(1))
    out.push_back({call.prefix, call.first + call.count});
  return out;
}

matrix_buffer<bf16> drafter_trace::taps_until(std::uint32_t rows) const {
  matrix_buffer<bf16> out(rows, config().dspark.target_layers.size() * config().width);
  std::size_t row = 0;
  for (const traced_call& call : calls_) {
    const auto recorded = trace_.matrix<bf16>(call.prefix + "final.main_hidden");
    for (std::size_t i = 0; i < recorded.rows && row < rows; ++i, ++row)
      std::ranges::copy(recorded.row(i), out.view().row_data(row));
  }
  return out;
}

void drafter_trace::compare(const std::string& recorded, const std::string& name,
                            const model::tapped_tensor& actual, layer_deviation& out) const {
  // Unlike hc_ffn's, the input of hc_attn is recorded.
  keep_deviation(trace_, recorded, name, name.starts_with("hc_attn."), actual, out);
}

layer_deviation drafter_trace::run_context() const {
  layer_deviation out;
  const model::rotary_frequencies no_rotary;
  const auto weights = unwrap(stage::load_drafter(source_->checkpoint(), config()));
  for (const traced_call& at : calls_) {
    const std::string& call = at.prefix;
    const model::taps probes(std::vector<std::string>{"dspark.main_x"},
                             [&](const model::tapped_tensor& tensor) {
                               compare(call + tensor.name, tensor.name, tensor, out);
                             });
    kernels::arena scratch;
    const model::context c{backend_, config(), no_rotary, scratch, probes, {}, {}};
    const auto recorded = trace_.matrix<bf16>(call + "final.main_hidden");
    matrix_buffer<bf16> taps(recorded.rows, recorded.cols);
    std::size_t column = 0;
    for (const std::uint32_t layer : config().dspark.target_layers) {
      const auto tap = model::make_tap(c, trace_.matrix<bf16>(at.layer(layer) + "in.stream"));
      for (std::size_t row = 0; row < tap.rows; ++row)
        std::ranges::copy(tap.row(row), taps.view().row_data(row) + column);
      column += tap.cols;
    }
    compare(call + "final.main_hidden", "main_hidden", as_tapped(std::as_const(taps).view()), out);
    model::combine_taps(c, weights, recorded);
  }
  return out;
}

layer_deviation drafter_trace::run_block(std::uint32_t block, const draft_mistake& with) const {
  layer_deviation out;
  model::model_config changed = config();
  with.in_config(changed);
  auto weights = unwrap(stage::load_drafter(source_->checkpoint(), config()));
  with.in_weights(weights);
  const auto rotary = model::make_rotary(changed);
  const model::taps no_probes;
  const std::uint32_t layer = changed.layers + block;
  for (const moment& at : moments()) {
    kernels::arena scratch;
    const std::uint32_t known = at.rows - with.rows_too_early;
    const std::uint32_t first = known > changed.window ? known - changed.window : 0;
    const auto taps = taps_until(known);
    std::vector<std::int32_t> positions(known - first);
    std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(first));
    const model::context of_context{backend_, changed, rotary, scratch, no_probes, positions, {}};
    const auto combined =
        model::combine_taps(of_context, weights, taps.view().rows_from(first, known - first));
    const auto entries = model::make_window_entries(of_context, weights.blocks[block].attention,
                                                    model::quantize(of_context, combined), 0);
    std::vector<const std::byte*> pointers;
    for (std::size_t row = 0; row < entries.rows; ++row) pointers.push_back(entries.row_data(row));

    const std::string prefix = at.prefix + "D" + std::to_string(block) + ".";
    const std::vector<std::string> wanted{
        "L*.hc_attn.pre", "L*.hc_attn.post", "L*.hc_attn.comb", "L*.attn.in",     "L*.attn.out",
        "L*.mid.stream",  "L*.hc_ffn.pre",   "L*.hc_ffn.post",  "L*.hc_ffn.comb", "L*.ffn.in",
        "L*.gate.scores", "L*.gate.indices", "L*.gate.weights", "L*.ffn.out",     "L*.out.stream"};
    std::size_t compared = 0;
    const model::taps probes(wanted, [&](const model::tapped_tensor& tensor) {
      const std::string start = "L" + std::to_string(layer) + ".";
      if (!tensor.name.starts_with(start)) throw std::runtime_error("offers " + tensor.name);
      const std::string name = tensor.name.substr(start.size());
      compared += trace_.has(prefix + name) ? 1 : 0;
      compare(prefix + name, name, tensor, out);
    });
    std::vector<std::int32_t> rows(changed.dspark.block_size);
    std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(at.rows));
    const std::vector<std::uint8_t> image_rows(rows.size());
    const model::context c{backend_, changed, rotary, scratch, probes, rows, image_rows};
    const auto streams = trace_.matrix<bf16>(prefix + "in.stream");
    matrix_buffer<bf16> out_streams(streams.rows, streams.cols);
    matrix_buffer<float> out_pre(streams.rows, changed.streams);
    const std::vector<model::draft_context> contexts{pointers};
    model::run_draft_block(c, block, weights.blocks[block], contexts,
                           {streams, trace_.matrix<float>(prefix + "in.pre_mix")},
                           {out_streams.view(), out_pre.view()});
    if (compared < 12) throw std::runtime_error(prefix + ": the trace lacks tensors");
  }
  return out;
}

drafter_trace::draft_deviation drafter_trace::run_drafts(const draft_mistake& with) const {
  draft_deviation out;
  model::model_config changed = config();
  with.in_config(changed);
  auto weights = unwrap(stage::load_drafter(source_->checkpoint(), config()));
  with.in_weights(weights);
  stage::drafter_stage drafter(backend_, changed, std::move(weights), 1);
  std::uint32_t known = 0;
  std::uint64_t step = 0;
  for (const moment& at : moments()) {
    const auto taps = taps_until(at.rows);
    const std::uint32_t count = at.rows - known;
    const std::vector<flow::row_span> spans{{one, known, count, count}};
    const std::uint32_t tapped = stage::tapped_rows(spans.front(), changed);
    const auto extended =
        drafter.extend(step_id{++step}, spans, taps.view().rows_from(at.rows - tapped, tapped));
    if (!extended) throw std::runtime_error(extended.error().message);
    known = at.rows;

    const auto tokens = trace_.integers(at.prefix + "dspark.tokens");
    const auto logits = trace_.floats(at.prefix + "dspark.logits");
    const auto confidence = trace_.floats(at.prefix + "dspark.confidence");
    for (const char* name : {"dspark.tokens", "dspark.logits", "dspark.confidence"})
      out.compared.insert(at.prefix + name);
    const std::vector<flow::draft_order> orders{
        {one, static_cast<token_id>(tokens.front()), at.rows, 1}};
    const auto choose = [&](std::size_t, std::uint32_t position, std::span<const float> mine) {
      const std::size_t place = position - at.rows;
      const auto golden = std::span(logits).subspan(place * mine.size(), mine.size());
      double square = 0;
      for (std::size_t i = 0; i < mine.size(); ++i) {
        const double delta = static_cast<double>(mine[i]) - static_cast<double>(golden[i]);
        square += delta * delta;
        out.logits_max = std::max(out.logits_max, std::abs(delta));
      }
      out.logits_rms_mean += std::sqrt(square / static_cast<double>(mine.size()));
      const auto forced = static_cast<token_id>(tokens[place + 1]);
      ++out.tokens;
      if (std::ranges::max_element(mine) - mine.begin() != forced) ++out.wrong_tokens;
      return forced;
    };
    const auto drafts = unwrap(drafter.run(orders, choose));
    for (std::size_t i = 0; i < confidence.size(); ++i)
      out.confidence_max =
          std::max(out.confidence_max,
                   std::abs(static_cast<double>(drafts.front().tokens[i].confidence_logit) -
                            static_cast<double>(confidence[i])));
  }
  out.logits_rms_mean /= static_cast<double>(out.tokens);
  return out;
}

}  // namespace cedar::test
