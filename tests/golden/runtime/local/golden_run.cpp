#include "tests/golden/runtime/local/golden_run.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/registry/registry.hpp"

namespace cedar::test {

namespace {

template <class T>
T unwrap(result<T> value) {
  if (!value) throw std::runtime_error(value.error().message);
  return std::move(*value);
}

/// Recorded selections of rows [first, first + count).
struct recorded_selections {
  stage::selection_overrides overrides;
  std::vector<kernels::matrix_buffer<std::int32_t>> experts;  // what the overrides refer to

  recorded_selections(const golden_file& file, const model::model_config& config, std::size_t first,
                      std::size_t count) {
    for (const std::uint32_t layer : config.index_sources) add_positions(file, layer, first, count);
    experts.reserve(config.layers);
    for (std::uint32_t layer = 0; layer < config.layers; ++layer)
      add_experts(file, config, layer, first, count);
  }

 private:
  void add_positions(const golden_file& file, std::uint32_t layer, std::size_t first,
                     std::size_t count) {
    const std::string name = "sel.topk.L" + std::to_string(layer);
    const auto all = file.integers(name);
    const std::size_t width = all.size() / file.shape(name).front();
    stage::selection& rows = overrides.positions[layer];
    rows.resize(count);
    for (std::size_t row = 0; row < count; ++row)
      for (std::size_t k = 0; k < width; ++k)
        if (const std::int64_t position = all[(first + row) * width + k]; position >= 0)
          rows[row].push_back(static_cast<std::uint32_t>(position));
  }

  void add_experts(const golden_file& file, const model::model_config& config, std::uint32_t layer,
                   std::size_t first, std::size_t count) {
    const auto all = file.integers("sel.experts.L" + std::to_string(layer));
    const std::size_t width = config.experts_per_token;
    experts.emplace_back(count, width);
    for (std::size_t i = 0; i < count * width; ++i)
      experts.back().data()[i] = static_cast<std::int32_t>(all[first * width + i]);
    overrides.experts[layer] = std::as_const(experts.back()).view();
  }
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
  std::vector<token_id> tokens;
  for (const std::int64_t token : file.integers("tokens"))
    tokens.push_back(static_cast<token_id>(token));
  const std::size_t prompt = tokens.size();
  const std::size_t steps = file.shape("decode.logits").front();
  const auto decoded = file.integers("decode.tokens");
  for (std::size_t i = 0; i < steps; ++i) tokens.push_back(static_cast<token_id>(decoded[i]));

  golden_logits out;
  out.vocabulary = config.vocabulary;
  std::uint64_t step = 0;
  for (std::size_t first = 0; first < tokens.size();) {
    const std::size_t chunk = options.chunk == 0 ? prompt : options.chunk;
    const std::size_t count = first < prompt ? std::min(chunk, prompt - first) : 1;
    const flow::step_table table = table_of(++step, tokens, first, count, config.engram_lookback());
    flow::proposal proposal;
    if (options.force_selections) {
      const recorded_selections forced(file, config, first, count);
      proposal = unwrap(with.engine->run(table, {}, forced.overrides));
    } else {
      proposal = unwrap(with.engine->run(table, {}));
    }
    const auto* logits = reinterpret_cast<const float*>(proposal.logits->data());
    std::vector<float>& to = first < prompt ? out.prefill : out.decode;
    to.insert(to.end(), logits, logits + count * config.vocabulary);
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
