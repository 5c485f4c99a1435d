#include "runtime/model/config.hpp"

#include <fmt/format.h>

#include <limits>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/config_reference.hpp"
#include "runtime/model/config_rules.hpp"
#include "runtime/store/json.hpp"
#include "runtime/store/mapped_file.hpp"

namespace cedar::model {
namespace {

// Bounds that keep every product of sizes inside 64 bits and every list that a configuration
// implies (schedule, manifest) inside memory. They are far from the released values.
constexpr std::uint32_t size_max = 1U << 20;
constexpr std::uint32_t layers_max = 1024;
constexpr std::uint32_t experts_max = 4096;
constexpr std::uint32_t heads_max = 4096;
constexpr std::uint32_t head_dim_max = 1U << 14;
constexpr std::uint32_t streams_max = 64;
constexpr std::uint32_t blocks_max = 64;
constexpr std::uint64_t rows_max = std::uint64_t{1} << 40;
constexpr std::uint32_t positions_max = std::numeric_limits<std::int32_t>::max();
constexpr float real_max = 1e9F;
constexpr std::uint64_t file_bytes_max = std::uint64_t{4} << 20;

void read_attention(config_reader& r, model_config& c) {
  r.number("num_attention_heads", c.heads, 1, heads_max);
  r.expect("num_key_value_heads", 1);
  r.number("head_dim", c.head_dim, 1, head_dim_max);
  r.number("qk_rope_head_dim", c.rope_dim, 2, head_dim_max);
  r.number("q_lora_rank", c.q_rank, 1, size_max);
  r.number("o_lora_rank", c.o_rank, 1, head_dim_max);
  r.number("o_groups", c.o_groups, 1, heads_max);
  r.expect("attention_bias", false);
  r.number("sliding_window", c.window, 1, size_max);
  r.number("index_n_heads", c.index_heads, 1, heads_max);
  r.number("index_head_dim", c.index_head_dim, 1, head_dim_max);
  r.number("index_topk", c.index_topk, 1, size_max);
}

void read_rotation(config_reader& r, model_config& c, const std::string& place,
                   config_problems& problems) {
  r.number("max_position_embeddings", c.max_positions, 1, positions_max);
  r.real("rope_theta", c.rope_theta, 1, real_max);
  r.real("compress_rope_theta", c.compress_rope_theta, 1, real_max);
  if (!r.has("rope_scaling")) return;
  const nlohmann::json* object = r.object("rope_scaling");
  if (object == nullptr) return;
  config_reader scaling(*object, place + "rope_scaling.", problems);
  scaling.expect("rope_type", "yarn");
  scaling.real("factor", c.yarn.factor, 1, real_max);
  scaling.real("beta_fast", c.yarn.beta_fast, 0, real_max);
  scaling.real("beta_slow", c.yarn.beta_slow, 0, real_max);
  scaling.number("original_max_position_embeddings", c.yarn.original_positions, 1, positions_max);
  scaling.report_unknown();
}

void read_schedule(config_reader& r, model_config& c) {
  r.list("compress_ratios", c.compress_ratios, size_max);
  r.list("kv_source_layer_ids", c.kv_sources, layers_max);
  r.list("index_source_layer_ids", c.index_sources, layers_max);
  r.number("candidate_topk_blocks", c.candidate_blocks, 1, size_max);
  r.number("candidate_block_size", c.candidate_block_size, 1, size_max);
}

/// -1 stands for "no candidate pool".
void read_candidate_source(config_reader& r, const nlohmann::json& text, model_config& c) {
  if (r.has("candidate_source_layer_id") && text["candidate_source_layer_id"] == -1) return;
  constexpr std::uint32_t unread = layers_max + 1;
  std::uint32_t layer = unread;
  r.number("candidate_source_layer_id", layer, 0, layers_max);
  if (layer != unread) c.candidate_source = layer;
}

void read_experts(config_reader& r, model_config& c) {
  r.number("moe_intermediate_size", c.expert_inner, 1, size_max);
  r.number("n_routed_experts", c.routed_experts, 1, experts_max);
  r.expect("n_shared_experts", 1);
  r.number("num_experts_per_tok", c.experts_per_token, 1, experts_max);
  r.expect("scoring_func", "sqrtsoftplus");
  r.expect("topk_method", "noaux_tc");
  r.boolean("norm_topk_prob", c.normalize_topk);
  r.expect("gate_temp", 1, true);  // the release omits it; the reference code's default is 1
  r.real("routed_scaling_factor", c.route_scale, 0, real_max);
  r.expect("hidden_act", "silu");
  r.real("swiglu_limit", c.swiglu_limit, 0, real_max);
}

void read_engram(config_reader& r, engram_config& e) {
  r.list("engram_layer_ids", e.layers, layers_max);
  r.list("engram_num_embeddings", e.rows, rows_max);
  r.number("engram_max_ngram_size", e.max_ngram, 2, 16);
  r.number("engram_vocab_size", e.bucket_start, 1, rows_max);
  r.number("engram_n_heads", e.heads, 1, 1024);
  r.number("engram_head_dim", e.head_dim, 1, head_dim_max);
  r.token("engram_pad_token_id", e.pad_token);
  r.number("engram_compressed_vocab_size", e.compressed_vocabulary, 1, positions_max);
}

void read_dspark(config_reader& r, dspark_config& d) {
  r.number("num_nextn_predict_layers", d.blocks, 0, blocks_max);
  r.number("dspark_block_size", d.block_size, 1, 1024);
  r.token("dspark_noise_token_id", d.noise_token);
  r.list("dspark_target_layer_ids", d.target_layers, layers_max);
  r.number("dspark_markov_rank", d.markov_rank, 1, size_max);
  r.number("dspark_n_routed_experts", d.routed_experts, 1, experts_max);
  r.number("dspark_num_experts_per_tok", d.experts_per_token, 1, experts_max);
}

void read_text(const nlohmann::json& text, const std::string& place, model_config& c,
               config_problems& problems) {
  config_reader r(text, place, problems);
  r.expect("model_type", "deepseek_v41_text");
  r.number("vocab_size", c.vocabulary, 1, positions_max);
  r.number("hidden_size", c.width, 1, size_max);
  r.number("num_hidden_layers", c.layers, 1, layers_max);
  r.real("rms_norm_eps", c.rms_epsilon, 0, 1);
  r.expect("tie_word_embeddings", false);
  r.number("hc_mult", c.streams, 1, streams_max);
  r.number("hc_sinkhorn_iters", c.sinkhorn_iterations, 1, 10000);
  r.real("hc_eps", c.hc_epsilon, 0, 1);
  read_attention(r, c);
  read_rotation(r, c, place, problems);
  read_schedule(r, c);
  read_candidate_source(r, text, c);
  read_experts(r, c);
  read_engram(r, c.engram);
  read_dspark(r, c.dspark);
  for (const char* key : {"attention_dropout", "initializer_range", "use_cache"}) r.ignore(key);
  r.report_unknown();
}

void read_vision(const nlohmann::json& vision, const std::string& place, vision_config& v,
                 config_problems& problems) {
  const std::size_t errors_before = problems.errors.size();
  config_problems own;  // its keys repeat names of the text part
  config_reader r(vision, place, own);
  r.expect("model_type", "deepseek_v41_vision");
  r.number("num_hidden_layers", v.layers, 0, layers_max);
  r.number("hidden_size", v.width, 1, size_max);
  r.number("num_attention_heads", v.heads, 1, heads_max);
  r.number("intermediate_size", v.inner, 1, size_max);
  r.number("patch_size", v.patch, 1, 1024);
  r.real("rope_theta", v.rope_theta, 1, real_max);
  r.number("downsample_ratio", v.downsample, 1, 64);
  r.number("max_image_tokens", v.max_image_tokens, 1, size_max);
  r.number("min_pixels", v.min_pixels, 0, positions_max);
  if (r.has("max_wh_ratio")) {
    float ratio = 0;
    r.real("max_wh_ratio", ratio, 1, real_max);
    v.max_wh_ratio = ratio;
  }
  r.report_unknown();
  for (auto& message : own.errors) problems.add(own.code, std::move(message));
  for (auto& message : own.warnings) problems.warnings.push_back(std::move(message));
  if (problems.errors.size() != errors_before) problems.failed_keys.insert("vision_config");
}

void read_quantization(const nlohmann::json& object, const std::string& place,
                       config_problems& problems) {
  config_reader r(object, place, problems);
  r.expect("quant_method", "fp8");
  r.expect("activation_scheme", "dynamic");
  r.expect("weight_block_size", nlohmann::json::array({32, 32}));
  r.expect("scale_fmt", "ue8m0");
  r.expect("expert_dtype", "fp4");
  r.report_unknown();
}

model_config read_nested(const nlohmann::json& root, const std::string& name,
                         config_problems& problems) {
  model_config c;
  config_reader r(root, name + ": ", problems);
  r.expect("architectures", nlohmann::json::array({"DeepseekV41ForCausalLM"}));
  r.expect("model_type", "deepseek_v41");
  r.expect("dtype", "bfloat16");
  r.ignore("transformers_version");
  r.token("bos_token_id", c.bos_token);
  if (r.has("eos_token_id")) r.tokens("eos_token_id", c.eos_tokens);
  r.token("pad_token_id", c.pad_token);
  if (r.has("image_token_id")) r.token("image_token_id", c.image_token);
  if (const auto* quantization = r.object("quantization_config"))
    read_quantization(*quantization, name + ": quantization_config.", problems);
  if (const auto* text = r.object("text_config"))
    read_text(*text, name + ": text_config.", c, problems);
  if (r.has("vision_config"))
    if (const auto* vision = r.object("vision_config"))
      read_vision(*vision, name + ": vision_config.", c.vision, problems);
  r.report_unknown();
  return c;
}

result<std::string> read_file(const std::filesystem::path& path) {
  auto file = store::mapped_file::open(path);
  if (!file) return fail(file.error());
  if ((*file)->bytes() > file_bytes_max)
    return fail(errc::malformed, fmt::format("{}: {} bytes are too many for a configuration",
                                             path.string(), (*file)->bytes()));
  std::string text((*file)->bytes(), '\0');
  if (auto done = (*file)->read(0, std::as_writable_bytes(std::span(text))); !done)
    return fail(done.error());
  return text;
}

config_reading refused(const error& problem) {
  config_reading reading;
  reading.errors.push_back(problem.message);
  reading.code = problem.code;
  return reading;
}

}  // namespace

config_reading read_config_text(const config_text& nested, const std::optional<config_text>& flat) {
  const auto root = store::parse_json(nested.text, nested.name);
  if (!root) return refused(root.error());
  if (!root->is_object()) return refused({errc::malformed, nested.name + ": is not an object"});

  config_problems problems;
  model_config config = read_nested(*root, nested.name, problems);
  if (!problems.failed_keys.contains("text_config"))
    check_rules(config, nested.name + ": ", problems);
  if (flat) {
    const auto other = store::parse_json(flat->text, flat->name);
    if (other)
      cross_check(*root, nested.name, *other, flat->name, problems);
    else
      problems.add(other.error().code, other.error().message);
  }
  config_reading reading;
  reading.errors = std::move(problems.errors);
  reading.warnings = std::move(problems.warnings);
  reading.code = problems.code;
  if (reading.errors.empty()) reading.config = std::move(config);
  return reading;
}

config_reading read_config(const std::filesystem::path& path) {
  std::error_code unused;
  const bool folder = std::filesystem::is_directory(path, unused);
  const std::filesystem::path file = folder ? path / "config.json" : path;
  const auto nested = read_file(file);
  if (!nested) return refused(nested.error());
  const std::filesystem::path beside = file.parent_path() / "inference" / "config.json";
  if (!std::filesystem::exists(beside, unused)) return read_config_text({*nested, file.string()});
  const auto flat = read_file(beside);
  if (!flat) return refused(flat.error());
  return read_config_text({*nested, file.string()}, config_text{*flat, beside.string()});
}

result<model_config> parse_config(const std::filesystem::path& path) {
  config_reading reading = read_config(path);
  if (reading.config) return *std::move(reading.config);
  return fail(reading.code, fmt::format("{}", fmt::join(reading.errors, "\n")));
}

}  // namespace cedar::model
