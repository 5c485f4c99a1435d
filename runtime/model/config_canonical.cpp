#include <fmt/format.h>

#include "runtime/model/config.hpp"

namespace cedar::model {
namespace {

/// Collects "key value" lines. Reals are written with the digits that identify a float.
class text_builder {
 public:
  template <class T>
  void add(std::string_view key, const T& value) {
    fmt::format_to(std::back_inserter(text_), "{} {}\n", key, value);
  }
  template <class T>
  void add(std::string_view key, const std::vector<T>& values) {
    fmt::format_to(std::back_inserter(text_), "{} {}\n", key, fmt::join(values, ","));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_attention(text_builder& t, const model_config& c) {
  t.add("heads", c.heads);
  t.add("head_dim", c.head_dim);
  t.add("rope_dim", c.rope_dim);
  t.add("q_rank", c.q_rank);
  t.add("o_groups", c.o_groups);
  t.add("o_rank", c.o_rank);
  t.add("window", c.window);
  t.add("rope_theta", c.rope_theta);
  t.add("compress_rope_theta", c.compress_rope_theta);
  t.add("yarn_factor", c.yarn.factor);
  t.add("yarn_beta_fast", c.yarn.beta_fast);
  t.add("yarn_beta_slow", c.yarn.beta_slow);
  t.add("yarn_original_positions", c.yarn.original_positions);
  t.add("max_positions", c.max_positions);
  t.add("compress_ratios", c.compress_ratios);
  t.add("kv_sources", c.kv_sources);
  t.add("index_sources", c.index_sources);
  t.add("index_heads", c.index_heads);
  t.add("index_head_dim", c.index_head_dim);
  t.add("index_topk", c.index_topk);
  t.add("candidate_source", c.candidate_source ? std::int64_t{*c.candidate_source} : -1);
  t.add("candidate_blocks", c.candidate_blocks);
  t.add("candidate_block_size", c.candidate_block_size);
}

void add_experts(text_builder& t, const model_config& c) {
  t.add("routed_experts", c.routed_experts);
  t.add("experts_per_token", c.experts_per_token);
  t.add("expert_inner", c.expert_inner);
  t.add("route_scale", c.route_scale);
  t.add("normalize_topk", c.normalize_topk);
  t.add("swiglu_limit", c.swiglu_limit);
  t.add("streams", c.streams);
  t.add("sinkhorn_iterations", c.sinkhorn_iterations);
  t.add("hc_epsilon", c.hc_epsilon);
}

void add_modules(text_builder& t, const model_config& c) {
  t.add("engram_layers", c.engram.layers);
  t.add("engram_rows", c.engram.rows);
  t.add("engram_max_ngram", c.engram.max_ngram);
  t.add("engram_heads", c.engram.heads);
  t.add("engram_head_dim", c.engram.head_dim);
  t.add("engram_bucket_start", c.engram.bucket_start);
  t.add("engram_pad_token", c.engram.pad_token);
  t.add("engram_compressed_vocabulary", c.engram.compressed_vocabulary);
  t.add("dspark_blocks", c.dspark.blocks);
  t.add("dspark_block_size", c.dspark.block_size);
  t.add("dspark_noise_token", c.dspark.noise_token);
  t.add("dspark_target_layers", c.dspark.target_layers);
  t.add("dspark_markov_rank", c.dspark.markov_rank);
  t.add("dspark_routed_experts", c.dspark.routed_experts);
  t.add("dspark_experts_per_token", c.dspark.experts_per_token);
}

void add_vision(text_builder& t, const vision_config& v) {
  t.add("vision_layers", v.layers);
  t.add("vision_width", v.width);
  t.add("vision_heads", v.heads);
  t.add("vision_inner", v.inner);
  t.add("vision_patch", v.patch);
  t.add("vision_rope_theta", v.rope_theta);
  t.add("vision_downsample", v.downsample);
  t.add("vision_max_image_tokens", v.max_image_tokens);
  t.add("vision_min_pixels", v.min_pixels);
  t.add("vision_max_wh_ratio", v.max_wh_ratio.value_or(0));
}

}  // namespace

std::string canonical_text(const model_config& c) {
  text_builder t;
  t.add("vocabulary", c.vocabulary);
  t.add("width", c.width);
  t.add("layers", c.layers);
  t.add("rms_epsilon", c.rms_epsilon);
  add_attention(t, c);
  add_experts(t, c);
  add_modules(t, c);
  add_vision(t, c.vision);
  t.add("bos_token", c.bos_token);
  t.add("eos_tokens", c.eos_tokens);
  t.add("pad_token", c.pad_token);
  t.add("image_token", c.image_token);
  return t.take();
}

}  // namespace cedar::model
