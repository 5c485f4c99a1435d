// The architecture of one checkpoint: every size that the model's code uses comes from here.
//
// Source: the nested Hugging Face `config.json` of the release; the flat `inference/config.json`,
// where present, is cross-checked. Defaults exist only for keys that the release omits.
// Invariant: a model_config obtained from parse_config() satisfies all divisibility and ordering
// rules that the kernels and the schedule rely on (config_rules.cpp); nothing later re-checks them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace cedar::model {

/// YaRN frequency scaling of the layers with compression ratio >= 1.
struct yarn_config {
  float factor = 1;
  float beta_fast = 32;
  float beta_slow = 1;
  std::uint32_t original_positions = 0;  ///< 0: no scaling
};

struct vision_config {
  std::uint32_t layers = 0;  ///< 0: the checkpoint has no vision tower
  std::uint32_t width = 0;
  std::uint32_t heads = 0;
  std::uint32_t inner = 0;
  std::uint32_t patch = 0;
  float rope_theta = 10000;
  std::uint32_t downsample = 0;
  std::uint32_t max_image_tokens = 0;
  std::uint32_t min_pixels = 0;
  std::optional<double> max_wh_ratio;
};

struct dspark_config {
  std::uint32_t blocks = 0;
  std::uint32_t block_size = 0;
  std::int32_t noise_token = 0;
  std::vector<std::uint32_t> target_layers;
  std::uint32_t markov_rank = 0;
  std::uint32_t routed_experts = 0;
  std::uint32_t experts_per_token = 0;
};

struct engram_config {
  std::vector<std::uint32_t> layers;  ///< modules sit before these layers
  std::vector<std::uint64_t> rows;  ///< table rows of each module
  std::uint32_t max_ngram = 0;  ///< orders 2..max_ngram
  std::uint32_t heads = 0;  ///< hash heads per order
  std::uint32_t head_dim = 0;
  std::uint64_t bucket_start = 0;  ///< where the search for prime bucket counts starts
  std::int32_t pad_token = 0;  ///< raw id
  std::uint32_t compressed_vocabulary = 0;
};

struct model_config {
  std::uint32_t vocabulary = 0;
  std::uint32_t width = 0;  ///< d, hidden_size
  std::uint32_t layers = 0;  ///< backbone layers
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t rope_dim = 0;  ///< the last rope_dim of head_dim are rotated
  std::uint32_t q_rank = 0;
  std::uint32_t o_groups = 0;
  std::uint32_t o_rank = 0;
  std::uint32_t window = 0;
  float rms_epsilon = 0;
  float rope_theta = 0;  ///< layers with ratio 0
  float compress_rope_theta = 0;  ///< layers with ratio >= 1
  yarn_config yarn;
  std::uint32_t max_positions = 0;
  std::vector<std::uint32_t> compress_ratios;  ///< one per backbone layer, then per DSpark block
  std::vector<std::uint32_t> kv_sources;
  std::vector<std::uint32_t> index_sources;
  std::uint32_t index_heads = 0;
  std::uint32_t index_head_dim = 0;
  std::uint32_t index_topk = 0;
  std::optional<std::uint32_t> candidate_source;
  std::uint32_t candidate_blocks = 0;
  std::uint32_t candidate_block_size = 0;
  std::uint32_t routed_experts = 0;
  std::uint32_t experts_per_token = 0;
  std::uint32_t expert_inner = 0;  ///< moe_intermediate_size, shared expert included
  float route_scale = 1;
  bool normalize_topk = true;
  float swiglu_limit = 0;  ///< 0: no clamp
  std::uint32_t streams = 0;  ///< hc_mult
  std::uint32_t sinkhorn_iterations = 0;
  float hc_epsilon = 0;
  engram_config engram;
  dspark_config dspark;
  vision_config vision;
  std::int32_t bos_token = 0;
  std::vector<std::int32_t> eos_tokens{1};  ///< each ends an answer; never empty
  std::int32_t pad_token = 2;
  std::int32_t image_token = -1;

  /// Columns of an engram address: (max_ngram - 1) * heads.
  std::uint32_t engram_columns() const noexcept {
    return engram.max_ngram == 0 ? 0 : (engram.max_ngram - 1) * engram.heads;
  }
  /// Ids before a row that its n-gram addresses look at: max_ngram - 1.
  std::uint32_t engram_lookback() const noexcept {
    return engram.max_ngram == 0 ? 0 : engram.max_ngram - 1;
  }
};

/// Everything that a person should know about a configuration at once.
struct config_reading {
  std::optional<model_config> config;  ///< present if and only if there are no errors
  std::vector<std::string> errors;  ///< each names its file and key
  std::vector<std::string> warnings;  ///< keys that cedar does not know
  errc code = errc::malformed;  ///< of the first error
};

/// Reads `path`: a folder with config.json, or the file itself. `inference/config.json` beside it
/// is cross-checked where it exists.
config_reading read_config(const std::filesystem::path& path);

/// The text of a file, and what to call it in messages.
struct config_text {
  std::string_view text;
  std::string name;
};

/// The same from texts: the nested configuration, and the flat one of the reference code if any.
config_reading read_config_text(const config_text& nested,
                                const std::optional<config_text>& flat = std::nullopt);

/// read_config() for a caller that only branches: the configuration, or all errors, one a line.
/// Errors: not_found, io (the file); malformed (JSON, a missing key, a wrong type); mismatch
/// (values that contradict each other or what cedar can run).
result<model_config> parse_config(const std::filesystem::path& path);

/// One "key value" line for each setting, in a fixed order: what store::fingerprint hashes. Two
/// configurations are the same model if and only if their texts are equal.
std::string canonical_text(const model_config& config);

}  // namespace cedar::model
