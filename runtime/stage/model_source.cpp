#include "runtime/stage/model_source.hpp"

#include <fstream>
#include <iterator>

#include "runtime/model/manifest.hpp"
#include "runtime/stage/weight_loader.hpp"
#include "runtime/store/fingerprint.hpp"
#include "runtime/text/engram_token_map.hpp"
#include "runtime/text/tokenizer.hpp"

namespace cedar::stage {

namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

}  // namespace

model_source::model_source(model::model_config config, store::checkpoint checkpoint,
                           std::vector<std::string> notes)
    : config_(std::move(config)),
      schedule_(config_),
      checkpoint_(std::move(checkpoint)),
      notes_(std::move(notes)) {}

result<std::unique_ptr<model_source>> model_source::open(const std::filesystem::path& folder) {
  model::config_reading reading = model::read_config(folder);
  if (!reading.config) return fail(reading.code, joined(reading.errors));
  result<store::checkpoint> checkpoint = store::checkpoint::open(folder);
  if (!checkpoint) return fail(checkpoint.error());
  const auto expected = model::manifest(*reading.config);
  const result<void> checked = model::check(expected, *checkpoint).outcome(folder.string());
  if (!checked) return fail(checked.error());
  return std::unique_ptr<model_source>(new model_source(
      std::move(*reading.config), std::move(*checkpoint), std::move(reading.warnings)));
}

result<std::uint64_t> model_source::fingerprint() const {
  // The tokenizer belongs to it: Engram's addresses follow from its classes of ids.
  std::ifstream tokenizer(folder() / "tokenizer.json", std::ios::binary);
  const std::string texts =
      model::canonical_text(config_) +
      std::string(std::istreambuf_iterator<char>(tokenizer), std::istreambuf_iterator<char>());
  const result<store::fingerprint> print = store::content_fingerprint(checkpoint_, texts);
  if (!print) return fail(print.error());
  return print->high ^ print->low;
}

result<embedding_stage> model_source::make_embedding() const {
  const auto table = load_embedding(checkpoint_, config_);
  if (!table) return fail(table.error());
  return embedding_stage(config_, *table);
}

result<engram_stage> model_source::make_engram() const {
  return make_engram(model::whole_tables(config_.engram));
}

result<engram_stage> model_source::make_engram(std::span<const model::engram_shard> shards) const {
  auto hash = model::make_engram_tables(config_);
  if (!hash) return fail(hash.error());
  // Without modules nothing is addressed, and no tokenizer is needed.
  if (hash->modules.empty())
    return engram_stage(config_, std::move(*hash), {},
                        std::vector<std::int32_t>(config_.vocabulary));
  const auto tokenizer = text::tokenizer::load(folder() / "tokenizer.json");
  if (!tokenizer) return fail(tokenizer.error());
  auto token_map = text::engram_token_map(
      *tokenizer,
      {config_.vocabulary, config_.engram.compressed_vocabulary, config_.engram.pad_token});
  if (!token_map) return fail(token_map.error());
  std::vector<engram_part> parts;
  for (const model::engram_shard& shard : shards) {
    const auto rows = load_engram_rows(checkpoint_, config_, shard);
    if (!rows) return fail(rows.error());
    parts.push_back({shard, *rows});
  }
  return engram_stage(config_, std::move(*hash), std::move(parts), std::move(*token_map));
}

result<std::unique_ptr<layer_stage>> model_source::make_layers(
    const kernels::backend& backend, const layer_stage_options& options) const {
  std::vector<model::layer_weights> layers;
  for (std::uint32_t layer = options.first_layer; layer <= options.last_layer; ++layer) {
    auto weights = load_layer(checkpoint_, config_, schedule_, layer, options.experts_elsewhere);
    if (!weights) return fail(weights.error());
    layers.push_back(std::move(*weights));
  }
  return std::make_unique<layer_stage>(backend, config_, schedule_, std::move(layers), options);
}

result<std::unique_ptr<expert_stage>> model_source::make_experts(
    const kernels::backend& backend, const model::expert_slice& slice) const {
  std::vector<std::vector<model::expert_weights>> layers;
  for (std::uint32_t layer = slice.first_layer; layer <= slice.last_layer; ++layer) {
    auto weights = load_experts(checkpoint_, config_, layer, slice);
    if (!weights) return fail(weights.error());
    layers.push_back(std::move(*weights));
  }
  return std::make_unique<expert_stage>(backend, config_, slice, std::move(layers));
}

std::unique_ptr<indexer_stage> model_source::make_indexer(const kernels::backend& backend,
                                                          const indexer_options& options) const {
  return std::make_unique<indexer_stage>(backend, config_, schedule_, options);
}

result<std::unique_ptr<head_stage>> model_source::make_head(const kernels::backend& backend) const {
  const auto weights = load_head(checkpoint_, config_);
  if (!weights) return fail(weights.error());
  return std::make_unique<head_stage>(backend, config_, *weights);
}

result<std::unique_ptr<drafter_stage>> model_source::make_drafter(
    const kernels::backend& backend, std::uint32_t requests_max) const {
  auto weights = load_drafter(checkpoint_, config_);
  if (!weights) return fail(weights.error());
  return std::make_unique<drafter_stage>(backend, config_, std::move(*weights), requests_max);
}

result<std::unique_ptr<vision_stage>> model_source::make_vision(
    const kernels::backend& backend) const {
  auto tower = vision::tower::open(checkpoint_, config_, backend);
  if (!tower) return fail(tower.error());
  return std::make_unique<vision_stage>(config_, std::move(*tower));
}

}  // namespace cedar::stage
