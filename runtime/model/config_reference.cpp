#include "runtime/model/config_reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cedar::model {
namespace {

struct pair_of_keys {
  const char* flat;
  const char* nested;  ///< JSON pointer
  const char* fallback = nullptr;  ///< JSON of the value that a missing nested key stands for
};

/// Source: the two configuration files of the release and the defaults of its reference code.
constexpr std::array pairs{
    pair_of_keys{"vocab_size", "/text_config/vocab_size"},
    pair_of_keys{"dim", "/text_config/hidden_size"},
    pair_of_keys{"moe_inter_dim", "/text_config/moe_intermediate_size"},
    pair_of_keys{"n_layers", "/text_config/num_hidden_layers"},
    pair_of_keys{"n_mtp_layers", "/text_config/num_nextn_predict_layers"},
    pair_of_keys{"dspark_block_size", "/text_config/dspark_block_size"},
    pair_of_keys{"dspark_noise_token_id", "/text_config/dspark_noise_token_id"},
    pair_of_keys{"dspark_target_layer_ids", "/text_config/dspark_target_layer_ids"},
    pair_of_keys{"dspark_markov_rank", "/text_config/dspark_markov_rank"},
    pair_of_keys{"dspark_n_routed_experts", "/text_config/dspark_n_routed_experts"},
    pair_of_keys{"dspark_n_activated_experts", "/text_config/dspark_num_experts_per_tok"},
    pair_of_keys{"n_heads", "/text_config/num_attention_heads"},
    pair_of_keys{"n_routed_experts", "/text_config/n_routed_experts"},
    pair_of_keys{"n_shared_experts", "/text_config/n_shared_experts"},
    pair_of_keys{"n_activated_experts", "/text_config/num_experts_per_tok"},
    pair_of_keys{"score_func", "/text_config/scoring_func"},
    pair_of_keys{"norm_topk_prob", "/text_config/norm_topk_prob", "true"},
    pair_of_keys{"gate_temp", "/text_config/gate_temp", "1"},
    pair_of_keys{"route_scale", "/text_config/routed_scaling_factor"},
    pair_of_keys{"swiglu_limit", "/text_config/swiglu_limit"},
    pair_of_keys{"q_lora_rank", "/text_config/q_lora_rank"},
    pair_of_keys{"head_dim", "/text_config/head_dim"},
    pair_of_keys{"rope_head_dim", "/text_config/qk_rope_head_dim"},
    pair_of_keys{"norm_eps", "/text_config/rms_norm_eps"},
    pair_of_keys{"o_groups", "/text_config/o_groups"},
    pair_of_keys{"o_lora_rank", "/text_config/o_lora_rank"},
    pair_of_keys{"window_size", "/text_config/sliding_window"},
    pair_of_keys{"kv_source_layers", "/text_config/kv_source_layer_ids"},
    pair_of_keys{"index_source_layers", "/text_config/index_source_layer_ids"},
    pair_of_keys{"original_seq_len", "/text_config/rope_scaling/original_max_position_embeddings",
                 "0"},
    pair_of_keys{"rope_theta", "/text_config/rope_theta"},
    pair_of_keys{"rope_factor", "/text_config/rope_scaling/factor"},
    pair_of_keys{"beta_fast", "/text_config/rope_scaling/beta_fast"},
    pair_of_keys{"beta_slow", "/text_config/rope_scaling/beta_slow"},
    pair_of_keys{"index_n_heads", "/text_config/index_n_heads"},
    pair_of_keys{"index_head_dim", "/text_config/index_head_dim"},
    pair_of_keys{"index_topk", "/text_config/index_topk"},
    pair_of_keys{"candidate_source_layer", "/text_config/candidate_source_layer_id"},
    pair_of_keys{"candidate_topk_blocks", "/text_config/candidate_topk_blocks"},
    pair_of_keys{"candidate_block_size", "/text_config/candidate_block_size"},
    pair_of_keys{"hc_mult", "/text_config/hc_mult"},
    pair_of_keys{"hc_sinkhorn_iters", "/text_config/hc_sinkhorn_iters"},
    pair_of_keys{"hc_eps", "/text_config/hc_eps"},
    pair_of_keys{"engram_layer_ids", "/text_config/engram_layer_ids"},
    pair_of_keys{"engram_vocab_size", "/text_config/engram_vocab_size"},
    pair_of_keys{"engram_num_embeddings", "/text_config/engram_num_embeddings"},
    pair_of_keys{"engram_max_ngram_size", "/text_config/engram_max_ngram_size"},
    pair_of_keys{"engram_pad_id", "/text_config/engram_pad_token_id"},
    pair_of_keys{"engram_compressed_vocab_size", "/text_config/engram_compressed_vocab_size"},
    pair_of_keys{"engram_n_heads", "/text_config/engram_n_heads"},
    pair_of_keys{"engram_head_dim", "/text_config/engram_head_dim"},
    pair_of_keys{"dtype", "/quantization_config/quant_method"},
    pair_of_keys{"expert_dtype", "/quantization_config/expert_dtype"},
    pair_of_keys{"compress_rope_theta", "/text_config/compress_rope_theta"},
    pair_of_keys{"compress_ratios", "/text_config/compress_ratios"},
    pair_of_keys{"vision_n_layers", "/vision_config/num_hidden_layers", "0"},
    pair_of_keys{"vision_dim", "/vision_config/hidden_size"},
    pair_of_keys{"vision_n_heads", "/vision_config/num_attention_heads"},
    pair_of_keys{"vision_inter_dim", "/vision_config/intermediate_size"},
    pair_of_keys{"vision_patch_size", "/vision_config/patch_size"},
    pair_of_keys{"vision_downsample_ratio", "/vision_config/downsample_ratio"},
    pair_of_keys{"vision_max_n_token", "/vision_config/max_image_tokens"},
    pair_of_keys{"vision_min_pixels", "/vision_config/min_pixels"},
    pair_of_keys{"vision_max_wh_ratio", "/vision_config/max_wh_ratio"},
    pair_of_keys{"vision_rope_theta", "/vision_config/rope_theta"},
    pair_of_keys{"image_token_id", "/image_token_id"},
};

/// "/text_config/rope_scaling/factor" as a person writes it.
std::string dotted(std::string_view pointer) {
  std::string text(pointer.substr(1));
  for (char& c : text)
    if (c == '/') c = '.';
  return text;
}

}  // namespace

void cross_check(const nlohmann::json& nested, const std::string& nested_name,
                 const nlohmann::json& flat, const std::string& flat_name,
                 config_problems& problems) {
  if (!flat.is_object()) {
    problems.add(errc::malformed, flat_name + ": is not an object");
    return;
  }
  for (const auto& [key, value] : flat.items()) {
    const auto known = std::find_if(pairs.begin(), pairs.end(),
                                    [&name = key](const auto& pair) { return pair.flat == name; });
    if (known == pairs.end()) {
      problems.warnings.push_back(flat_name + ": " + key + " is not known to cedar");
      continue;
    }
    const nlohmann::json::json_pointer pointer(known->nested);
    nlohmann::json other;
    if (nested.contains(pointer))
      other = nested.at(pointer);
    else if (known->fallback != nullptr)
      other = nlohmann::json::parse(known->fallback);
    else
      continue;  // a missing key is reported where the nested file is read
    if (other != value)
      problems.add(errc::mismatch,
                   fmt::format("{}: {} is {}, but {}: {} is {}", nested_name, dotted(known->nested),
                               shown(other), flat_name, key, shown(value)));
  }
}

}  // namespace cedar::model
