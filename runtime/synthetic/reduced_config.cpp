#include "runtime/synthetic/reduced_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/model/engram_hash.hpp"
#include "runtime/model/schedule.hpp"
#include "runtime/store/json.hpp"

namespace cedar::synthetic {
namespace {

using nlohmann::json;

/// A range cannot be longer: no configuration has that many layers.
constexpr std::uint32_t layer_max = 1023;

std::optional<std::uint32_t> parse_layer(std::string_view text) {
  std::uint32_t layer = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), layer);
  if (failed != std::errc{} || end != text.data() + text.size() || layer > layer_max)
    return std::nullopt;
  return layer;
}

std::string joined(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

result<model::model_config> read(const model::config_text& text) {
  model::config_reading reading = model::read_config_text(text);
  if (reading.config) return *std::move(reading.config);
  return fail(reading.code, joined(reading.errors));
}

/// Where the layers of the original went.
class renumbering {
 public:
  explicit renumbering(const std::vector<std::uint32_t>& layers) : layers_(layers) {}

  bool has(std::uint32_t layer) const {
    return std::binary_search(layers_.begin(), layers_.end(), layer);
  }
  /// New numbers of those of `sources` that were chosen.
  std::vector<std::uint32_t> of(const std::vector<std::uint32_t>& sources) const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < layers_.size(); ++i)
      if (std::ranges::find(sources, layers_[i]) != sources.end()) out.push_back(i);
    return out;
  }

 private:
  const std::vector<std::uint32_t>& layers_;
};

/// What chosen layers need and is not chosen, a line each.
std::vector<std::string> missing(const model::model_config& config,
                                 const std::vector<std::uint32_t>& layers) {
  const model::schedule plan(config);
  const renumbering chosen(layers);
  std::vector<std::string> out;
  for (const std::uint32_t layer : layers) {
    if (layer >= config.layers) {
      out.push_back(
          fmt::format("there is no layer {}: the model has 0 to {}", layer, config.layers - 1));
      continue;
    }
    const model::layer_schedule& role = plan[layer];
    const auto need = [&](const std::optional<std::uint32_t>& source, const char* what) {
      if (source && !chosen.has(*source))
        out.push_back(
            fmt::format("layer {} {} layer {}: choose that layer too", layer, what, *source));
    };
    need(role.owner, "reads the global KV of");
    if (role.index_source != role.owner) need(role.index_source, "uses the selection of");
    if (role.uses_candidates && config.candidate_source != role.owner)
      need(config.candidate_source, "selects among the candidates of");
  }
  return out;
}

void set_schedule(json& text, const model::model_config& config,
                  const std::vector<std::uint32_t>& layers) {
  const renumbering chosen(layers);
  std::vector<std::uint32_t> ratios;
  for (const std::uint32_t layer : layers) ratios.push_back(config.compress_ratios[layer]);
  text["num_hidden_layers"] = layers.size();
  text["compress_ratios"] = ratios;
  text["kv_source_layer_ids"] = chosen.of(config.kv_sources);
  text["index_source_layer_ids"] = chosen.of(config.index_sources);
  text["engram_layer_ids"] = chosen.of(config.engram.layers);
  text["candidate_source_layer_id"] = -1;
  if (config.candidate_source && chosen.has(*config.candidate_source))
    text["candidate_source_layer_id"] = chosen.of({*config.candidate_source}).front();
}

void set_drafts(json& text, const model::model_config& config, const reduction& to) {
  const std::size_t layers = to.layers.size();
  const std::size_t tapped = config.dspark.target_layers.size();
  std::vector<std::size_t> targets;
  if (to.noise_token)
    for (std::size_t layer = layers - tapped; layer < layers; ++layer) targets.push_back(layer);
  text["dspark_target_layer_ids"] = targets;
  text["num_nextn_predict_layers"] = to.noise_token ? config.dspark.blocks : 0;
  if (!to.noise_token) return;
  // A draft block sees a window alone.
  for (std::uint32_t block = 0; block < config.dspark.blocks; ++block)
    text["compress_ratios"].push_back(0);
  text["dspark_noise_token_id"] = *to.noise_token;
  text["dspark_n_routed_experts"] = std::min(to.experts, config.dspark.routed_experts);
}

void set_vision(json& root, const reduction& to) {
  if (to.image_token) {
    root["image_token_id"] = *to.image_token;
    return;
  }
  if (root.contains("vision_config")) root["vision_config"]["num_hidden_layers"] = 0;
  // Without vision no token stands for an image.
  root.erase("image_token_id");
}

}  // namespace

result<std::vector<std::uint32_t>> parse_layers(std::string_view text) {
  std::vector<std::uint32_t> out;
  for (std::string_view rest = text;;) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const std::size_t dash = part.find('-');
    const auto first = parse_layer(part.substr(0, dash));
    const auto last = dash == part.npos ? first : parse_layer(part.substr(dash + 1));
    if (!first || !last || *last < *first || (!out.empty() && *first <= out.back()))
      return fail(errc::invalid_argument,
                  fmt::format("layers '{}': '{}' is wrong; give numbers and ranges, ascending and "
                              "without repetition, like 0-3,20-21",
                              text, part));
    for (std::uint32_t layer = *first; layer <= *last; ++layer) out.push_back(layer);
    if (part.size() == rest.size()) return out;
    rest.remove_prefix(part.size() + 1);
  }
}

result<std::string> reduce_config(const model::config_text& original, const reduction& to) {
  const auto config = read(original);
  if (!config) return fail(config.error());
  if (to.layers.empty()) return fail(errc::invalid_argument, "no layer is chosen");
  const std::vector<std::string> problems = missing(*config, to.layers);
  if (!problems.empty()) return fail(errc::invalid_argument, joined(problems));

  const std::size_t tapped = config->dspark.target_layers.size();
  if (to.noise_token && to.layers.size() < tapped)
    return fail(
        errc::invalid_argument,
        fmt::format("the draft blocks tap {} layers, chosen are {}: choose more, or leave the "
                    "draft blocks out",
                    tapped, to.layers.size()));

  auto root = store::parse_json(original.text, original.name);
  if (!root) return fail(root.error());
  json& text = root->at("text_config");
  set_schedule(text, *config, to.layers);
  set_drafts(text, *config, to);
  set_vision(*root, to);
  text["n_routed_experts"] = to.experts;
  text["vocab_size"] = to.vocabulary;
  text["engram_vocab_size"] = to.engram_rows;
  text["engram_compressed_vocab_size"] = to.engram_classes;
  text["engram_num_embeddings"] = model::engram_row_counts(
      text["engram_layer_ids"].size(), config->engram_columns(), to.engram_rows);
  std::string out = root->dump(1) + "\n";
  const auto valid = read({out, "the reduced configuration"});
  if (!valid) return fail(valid.error());
  return out;
}

}  // namespace cedar::synthetic
