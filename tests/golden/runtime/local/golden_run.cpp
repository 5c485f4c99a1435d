#include "tests/golden/runtime/local/golden_run.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/registry/registry.hpp"
#include "tests/support/golden_images.hpp"

namespace cedar::test {

namespace {

template <class T>
T unwrap(result<T> value) {
  if (!value) throw std::runtime_error(value.error().message);
  return std::move(*value);
}

/// Rows [first, first + count) of a recorded run.
struct row_range {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Recorded selections, to be replayed.
class recorded_selections {
 public:
  recorded_selections(const golden_file& file, const model::model_config& config)
      : file_(file), config_(config) {
    experts_.reserve(config.layers);
  }

  /// Layers [first, last] get what the file has under `prefix` for `rows`.
  void add(const std::string& prefix, std::uint32_t first, std::uint32_t last, row_range rows) {
    for (const std::uint32_t layer : config_.index_sources)
      if (layer >= first && layer <= last) add_positions(prefix, layer, rows);
    for (std::uint32_t layer = first; layer <= last; ++layer) add_experts(prefix, layer, rows);
  }

  const stage::selection_overrides& overrides() const { return overrides_; }

 private:
  void add_positions(const std::string& prefix, std::uint32_t layer, row_range range) {
    const std::string name = prefix + "sel.topk.L" + std::to_string(layer);
    const auto all = file_.integers(name);
    const std::size_t width = all.size() / file_.shape(name).front();
    stage::selection& rows = overrides_.positions[layer];
    rows.resize(range.count);
    for (std::size_t row = 0; row < range.count; ++row)
      for (std::size_t k = 0; k < width; ++k)
        if (const std::int64_t position = all[(range.first + row) * width + k]; position >= 0)
          rows[row].push_back(static_cast<std::uint32_t>(position));
  }

  void add_experts(const std::string& prefix, std::uint32_t layer, row_range range) {
    const auto all = file_.integers(prefix + "sel.experts.L" + std::to_string(layer));
    const std::size_t width = config_.experts_per_token;
    experts_.emplace_back(range.count, width);
    for (std::size_t i = 0; i < range.count * width; ++i)
      experts_.back().data()[i] = static_cast<std::int32_t>(all[range.first * width + i]);
    overrides_.experts[layer] = std::as_const(experts_.back()).view();
  }

  const golden_file& file_;
  const model::model_config& config_;
  stage::selection_overrides overrides_;
  std::vector<kernels::matrix_buffer<std::int32_t>> experts_;  // what the overrides refer to
};

flow::step_table table_of(std::uint64_t step, std::span<const token_id> all, std::size_t first,
                          std::size_t count, std::size_t lookback_max) {
  flow::step_table table;
  table.step = step_id{step};
  table.spans = {
      {request_id{1}, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count), 0}};
  table.tokens.assign(all.begin() + static_cast<std::ptrdiff_t>(first),
                      all.begin() + static_cast<std::ptrdiff_t>(first + count));
  const std::size_t lookback = std::min(first, lookback_max);
  table.lookback.assign(all.begin() + static_cast<std::ptrdiff_t>(first - lookback),
                        all.begin() + static_cast<std::ptrdiff_t>(first));
  table.want_logits = true;
  return table;
}

}  // namespace

golden_engine open_engine(const std::string& folder, const std::string& backend) {
  golden_engine out;
  out.backend = kernels::make_backend(backend);
  if (!out.backend) throw std::runtime_error("no backend " + backend);
  out.source = unwrap(stage::model_source::open(folder));
  out.engine = unwrap(local::local_engine::open(*out.source, *out.backend, {512, 2, 2048}));
  return out;
}

golden_logits run_prompt(golden_engine& with, const golden_file& file,
                         const golden_options& options) {
  const model::model_config& config = with.source->config();
  const std::string mode = options.bounded ? "bounded." : "";
  auto [tokens, images] = image_prompt_of(file, config);
  for (flow::prompt_image& image : images) {
    const flow::request_image added{request_id{1}, std::move(image)};
    if (const auto taken = with.engine->add_images({&added, 1}); !taken)
      throw std::runtime_error(taken.error().message);
  }
  const std::size_t prompt = tokens.size();
  const std::size_t steps = file.shape(mode + "decode.logits").front();
  const auto decoded = file.integers(mode + "decode.tokens");
  for (std::size_t i = 0; i < steps; ++i) tokens.push_back(static_cast<token_id>(decoded[i]));
  const std::size_t decoder_begin =
      options.bounded && prompt > config.window ? prompt - config.window : 0;
  // Encoder layers select alike in both modes, but only for the same tokens.
  const bool same_tokens = !options.bounded || file.integers("decode.tokens") == decoded;
  const std::uint32_t first_decoder_layer = with.source->schedule().decoder_begin();

  golden_logits out;
  out.vocabulary = config.vocabulary;
  std::uint64_t step = 0;
  for (std::size_t first = 0; first < tokens.size();) {
    const std::size_t chunk = options.chunk == 0 ? prompt : options.chunk;
    const std::size_t count = first < prompt ? std::min(chunk, prompt - first) : 1;
    flow::step_table table = table_of(++step, tokens, first, count, config.engram_lookback());
    flow::row_span& span = table.spans.front();
    span.decoder_begin = static_cast<std::uint32_t>(decoder_begin);
    span.logits_from = span.decoder_from();
    recorded_selections forced(file, config);
    if (options.force_selections) {
      if (first < prompt || same_tokens) forced.add("", 0, first_decoder_layer - 1, {first, count});
      forced.add(mode, first_decoder_layer, config.layers - 1,
                 {first + span.decoder_from() - decoder_begin, span.decoder_count()});
    }
    table.taps = options.taps;
    const flow::proposal proposal =
        unwrap(with.engine->run(table, options.on_tap, forced.overrides()));
    if (options.after_step) options.after_step(table);
    const auto* logits = reinterpret_cast<const float*>(flow::bytes_of(proposal.logits).data());
    std::vector<float>& to = first < prompt ? out.prefill : out.decode;
    to.insert(to.end(), logits, logits + span.logits_count() * config.vocabulary);
    first += count;
    with.engine->apply(
        {table.step,
         table.epoch,
         {{request_id{1}, static_cast<std::uint32_t>(first), first == tokens.size()}}});
  }
  return out;
}

double rms_difference(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

double max_difference(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

std::size_t arg_max(std::span<const float> values) {
  return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
}

}  // namespace cedar::test
