#include "tests/golden/runtime/stage/layer_trace.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "runtime/model/compressor.hpp"
#include "runtime/model/engram.hpp"
#include "runtime/model/image_tokens.hpp"
#include "runtime/stage/weight_loader.hpp"

namespace cedar::test {

using kernels::bf16;
using kernels::matrix_view;

namespace {

template <class T>
T unwrap(result<T> value) {
  if (!value) throw std::runtime_error(value.error().message);
  return std::move(*value);
}

/// Where the recorded tensor of that name is compared as integers.
bool is_choice(const std::string& name) {
  return name == "gate.indices" || name == "index.topk";
}

template <class T>
std::vector<float> as_floats(std::span<const std::byte> bytes) {
  const auto* elements = reinterpret_cast<const T*>(bytes.data());
  std::vector<float> out(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if constexpr (std::is_same_v<T, bf16>)
      out[i] = to_float(elements[i]);
    else
      out[i] = static_cast<float>(elements[i]);
  }
  return out;
}

void keep_largest(std::map<std::string, double>& all, const std::string& name, double value) {
  auto [found, fresh] = all.try_emplace(name, value);
  if (!fresh) found->second = std::max(found->second, value);
}

}  // namespace

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

layer_trace::layer_trace(const std::string& checkpoint, const kernels::backend& backend)
    : backend_(backend),
      source_(unwrap(
          stage::model_source::open(std::string(CEDAR_TEST_DATA) + "/golden/" + checkpoint))),
      trace_(checkpoint + "/golden/" +
             (checkpoint == "tiny-vision" ? "trace-vl-one-image" : "trace-0100") + ".safetensors") {
}

std::vector<layer_trace::call> layer_trace::calls() const {
  const auto ids_of = [&](const char* name) {
    std::vector<token_id> ids;
    for (const std::int64_t token : trace_.integers(name))
      ids.push_back(static_cast<token_id>(token));
    return ids;
  };
  call prefill{"prefill.", 0, 0, ids_of("tokens")};
  prefill.count = static_cast<std::uint32_t>(prefill.tokens.size());
  std::vector<call> out{prefill};
  for (const token_id token : ids_of("decode_tokens")) {
    const std::string prefix = "decode" + std::to_string(out.size() - 1) + ".";
    out.push_back({prefix, out.back().first + out.back().count, 1, {token}});
  }
  return out;
}

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
  for (const call& one : calls()) run_call(at, one, out);
  return out;
}

/// Recorded global KV of an owner that is another layer, as far as this call sees it.
void layer_trace::fill_owner(const setting& with, const call& at) const {
  const auto owner = with.schedule[with.layer].owner;
  if (!owner || *owner == with.layer) return;
  const std::string prefix = at.prefix + "L" + std::to_string(*owner) + ".";
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

stage::selection_overrides layer_trace::recorded_choice(const setting& with, const call& at) const {
  stage::selection_overrides out;
  const auto source = with.schedule[with.layer].index_source;
  if (!source || *source == with.layer) return out;
  const auto all = trace_.integers(at.prefix + "L" + std::to_string(*source) + ".index.topk");
  stage::selection& rows = out.positions[*source];
  rows.resize(at.count);
  const std::size_t width = all.size() / at.count;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] >= 0) rows[i / width].push_back(static_cast<std::uint32_t>(all[i]));
  return out;
}

std::vector<kernels::candidate_pool> layer_trace::recorded_candidates(const setting& with,
                                                                      const call& at) const {
  std::vector<kernels::candidate_pool> pools(at.count);
  if (!with.schedule[with.layer].uses_candidates) return pools;
  const auto mask = trace_.matrix<std::uint8_t>(
      at.prefix + "L" + std::to_string(*with.config.candidate_source) + ".index.candidates");
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

void layer_trace::run_call(const setting& with, const call& at, layer_deviation& out) const {
  fill_owner(with, at);
  stage::step_rows rows;
  rows.spans = {{{request_id{1}, at.first, at.count, at.count}, 0, with.sequence.get()}};
  for (std::uint32_t i = 0; i < at.count; ++i)
    rows.positions.push_back(static_cast<std::int32_t>(at.first + i));
  rows.image_rows = model::image_flags(with.config, at.tokens);
  if (with.no_images) rows.image_rows.assign(at.count, 0);

  const std::string prefix = at.prefix + "L" + std::to_string(with.layer) + ".";
  const std::vector<std::string> wanted{
      "L*.hc_attn.pre", "L*.hc_attn.post",   "L*.hc_attn.comb",  "L*.attn.in",
      "L*.attn.q",      "L*.attn.qr",        "L*.attn.latent",   "L*.attn.compress_kv",
      "L*.index.q",     "L*.index.k",        "L*.index.weights", "L*.index.score",
      "L*.index.topk",  "L*.attn.o_rotated", "L*.attn.out",      "L*.mid.stream",
      "L*.hc_ffn.pre",  "L*.hc_ffn.post",    "L*.hc_ffn.comb",   "L*.ffn.in",
      "L*.gate.scores", "L*.gate.indices",   "L*.gate.weights",  "L*.ffn.out",
      "L*.out.stream"};
  const model::taps probes(wanted, [&](const model::tapped_tensor& tensor) {
    compare(with.layer, at, tensor.name.substr(tensor.name.find('.') + 1), tensor, out);
  });
  kernels::arena scratch;
  const model::context c{backend_, with.config,    with.rotary,    scratch,
                         probes,   rows.positions, rows.image_rows};
  const auto streams = trace_.matrix<bf16>(prefix + "in.stream");
  const model::residual in{streams, trace_.matrix<float>(prefix + "in.pre_mix")};
  kernels::matrix_buffer<bf16> out_streams(at.count, streams.cols);
  kernels::matrix_buffer<float> out_pre(at.count, with.config.streams);
  stage::step_selections selections;
  selections.candidates = recorded_candidates(with, at);
  const stage::layer_runner runner(with.config, with.schedule, with.layer, with.weights);
  const model::residual_out to{out_streams.view(), out_pre.view()};
  const auto overrides = recorded_choice(with, at);
  const auto attention = model::take_frame(scratch, with.config, at.count);
  const auto moe = model::take_frame(scratch, with.config, at.count);
  const model::residual opened = runner.open(c, rows, in, to, attention);
  const auto half =
      runner.begin_attention(c, rows, selections, overrides, opened, attention, false);
  if (!half) throw std::runtime_error(half.error().message);
  runner.end_attention(c, rows, selections, *half, to, moe);
  // The second half starts from the recorded streams where the trace has them.
  model::residual mid{to.streams, to.pre};
  if (trace_.has(prefix + "mid.stream")) {
    mid = {trace_.matrix<bf16>(prefix + "mid.stream"),
           trace_.matrix<float>(prefix + "hc_attn.pre")};
    model::begin_sublayer(c, model::sublayer_of(with.weights.moe, moe), mid);
  }
  runner.run_moe(c, overrides, moe, mid, to, nullptr);
}

void layer_trace::compare(std::uint32_t layer, const call& at, const std::string& name,
                          const model::tapped_tensor& actual, layer_deviation& out) const {
  const std::string prefix = at.prefix + "L" + std::to_string(layer) + ".";
  std::string recorded = prefix + name;
  if (name == "out.stream" && !trace_.has(recorded))
    recorded = at.prefix + "L" + std::to_string(layer + 1) + ".in.stream";
  if (!trace_.has(recorded)) return;
  if (is_choice(name)) {
    const auto expected = trace_.integers(recorded);
    const auto* chosen = reinterpret_cast<const std::int32_t*>(actual.bytes.data());
    const std::size_t width = actual.shape.back();
    const std::size_t golden_width = expected.size() / at.count;
    for (std::size_t row = 0; row < at.count; ++row) {
      std::vector<std::int64_t> mine(chosen + row * width, chosen + (row + 1) * width);
      std::vector<std::int64_t> theirs(
          expected.begin() + static_cast<long>(row * golden_width),
          expected.begin() + static_cast<long>((row + 1) * golden_width));
      std::erase(mine, -1);
      std::erase(theirs, -1);
      std::ranges::sort(mine);
      std::ranges::sort(theirs);
      if (mine != theirs) ++out.wrong_choices;
    }
    return;
  }
  const auto expected = trace_.floats(recorded);
  const bool narrow = actual.type == kernels::dtype::bf16;
  const auto mine = narrow ? as_floats<bf16>(actual.bytes) : as_floats<float>(actual.bytes);
  if (mine.size() != expected.size()) {
    ++out.wrong_choices;
    return;
  }
  double largest = 0;
  double worst = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i] == expected[i]) continue;  // also -inf against -inf
    worst =
        std::max(worst, std::abs(static_cast<double>(mine[i]) - static_cast<double>(expected[i])));
  }
  for (const float value : expected)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  const bool exact_input = name.starts_with("hc_attn.") ||
                           (name.starts_with("hc_ffn.") && trace_.has(prefix + "mid.stream"));
  if (exact_input) {
    keep_largest(out.absolute, name, worst);
  } else if (!narrow) {
    keep_largest(out.relative_rms, name, relative_rms(mine, expected));
  } else if (name == "index.score") {
    keep_largest(out.largest_ulps, name, worst / bf16_ulp(largest));
  } else {
    keep_largest(out.relative_rms, name, relative_rms(mine, expected));
    keep_largest(out.largest_ulps, name, worst / bf16_ulp(largest));
  }
}

layer_deviation layer_trace::run_engram(std::uint32_t layer) const {
  layer_deviation out;
  const auto weights = unwrap(
      stage::load_layer(source_->checkpoint(), source_->config(), source_->schedule(), layer));
  if (!weights.engram) return out;
  const model::model_config& config = source_->config();
  for (const call& at : calls()) {
    const std::string prefix = at.prefix + "L" + std::to_string(layer) + ".";
    const auto fetched = trace_.matrix<bf16>(prefix + "engram.rows");
    const std::size_t rows = at.count * config.engram_columns();
    kernels::matrix_buffer<std::byte> packed(rows, model::engram_row_bytes(config));
    backend_.pack_entries({{fetched.data, rows, config.engram.head_dim},
                           packed.view(),
                           kernels::entry_format::fp8_e8m0_32});
    const std::vector<std::string> wanted{"L*.engram.kv", "L*.engram.gate", "L*.engram.rows"};
    const model::taps probes(wanted, [&](const model::tapped_tensor& tensor) {
      compare(layer, at, tensor.name.substr(tensor.name.find('.') + 1), tensor, out);
    });
    const std::vector<std::int32_t> positions(at.count);
    const std::vector<std::uint8_t> image_rows = model::image_flags(config, at.tokens);
    const auto rotary = model::make_rotary(config);
    kernels::arena scratch;
    const model::context c{backend_, config, rotary, scratch, probes, positions, image_rows};
    const auto before =
        trace_.matrix<bf16>(at.prefix + "L" + std::to_string(layer - 1) + ".out.stream");
    kernels::matrix_buffer<bf16> after(at.count, before.cols);
    model::apply_engram(c, layer, *weights.engram,
                        {packed.data(), at.count, config.engram_columns() * packed.cols()}, before,
                        after.view());
    compare(layer, at, "in.stream",
            {"in.stream",
             kernels::dtype::bf16,
             {at.count, static_cast<std::uint32_t>(before.cols)},
             std::as_bytes(std::as_const(after).span())},
            out);
  }
  check_addresses(layer, out);
  return out;
}

void layer_trace::check_addresses(std::uint32_t layer, layer_deviation& out) const {
  const stage::engram_stage addresses = unwrap(source_->make_engram());
  const model::model_config& config = source_->config();
  std::vector<token_id> before;
  for (const call& at : calls()) {
    flow::step_table table;
    table.spans = {{request_id{1}, at.first, at.count, 0}};
    table.tokens = at.tokens;
    const std::size_t lookback = std::min<std::size_t>(at.first, config.engram_lookback());
    table.lookback.assign(before.end() - static_cast<std::ptrdiff_t>(lookback), before.end());
    before.insert(before.end(), at.tokens.begin(), at.tokens.end());
    for (const flow::row_block& block : unwrap(addresses.run(table))) {
      if (block.layer != layer) continue;
      const auto expected =
          trace_.vector<bf16>(at.prefix + "L" + std::to_string(layer) + ".engram.rows");
      const std::size_t rows = at.count * config.engram_columns();
      const std::size_t bytes = model::engram_row_bytes(config);
      kernels::matrix_buffer<bf16> fetched(rows, config.engram.head_dim);
      backend_.unpack_entries({{flow::bytes_of(block.payload).data(), rows, bytes},
                               fetched.view(),
                               kernels::entry_format::fp8_e8m0_32});
      if (!std::ranges::equal(fetched.span(), expected)) ++out.wrong_choices;
    }
  }
}

}  // namespace cedar::test
