#include "runtime/model/config_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace cedar::model {
namespace {

/// FP8 activations and FP4 weights are quantised in groups of 32 along the inner dimension.
constexpr std::uint32_t group = 32;

using keys = std::initializer_list<const char*>;

class rule_set {
 public:
  rule_set(const model_config& config, const std::string& place, config_problems& problems)
      : c_(config), place_(place), problems_(problems) {}

  void check() {
    check_divisibility();
    check_attention();
    check_layers();
    check_sources();
    check_candidates();
    check_experts();
    check_tokens();
    check_engram();
    check_dspark();
    check_vision();
  }

 private:
  /// Adds `message` if `holds()` is false; `holds` runs only if all keys could be read.
  void rule(keys involved, const std::function<bool()>& holds, const std::string& message) {
    if (!readable(involved) || holds()) return;
    problems_.add(errc::mismatch, place_ + message);
  }
  bool readable(keys involved) const {
    return std::none_of(involved.begin(), involved.end(), [this](const char* key) {
      return problems_.failed_keys.contains(std::string_view(key));
    });
  }
  void divisible(const char* key, std::uint32_t value) {
    rule(
        {key}, [=] { return value % group == 0; },
        fmt::format("{} {} must be divisible by {}", key, value, group));
  }
  void ascending(const char* key, const std::vector<std::uint32_t>& layers) {
    rule(
        {key, "num_hidden_layers"},
        [&] {
          return std::is_sorted(layers.begin(), layers.end(), std::less_equal<>{}) &&
                 (layers.empty() || layers.back() < c_.layers);
        },
        fmt::format("{} must be ascending, without repetition, and below num_hidden_layers {}", key,
                    c_.layers));
  }
  void in_vocabulary(const char* key, std::int32_t id) {
    rule(
        {key, "vocab_size"}, [&] { return static_cast<std::uint32_t>(id) < c_.vocabulary; },
        fmt::format("{} {} must be below vocab_size {}", key, id, c_.vocabulary));
  }
  static bool contains(const std::vector<std::uint32_t>& list, std::uint32_t value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }
  /// The latest of `sources` that is not after `layer`.
  static std::optional<std::uint32_t> latest(const std::vector<std::uint32_t>& sources,
                                             std::uint32_t layer) {
    const auto after = std::upper_bound(sources.begin(), sources.end(), layer);
    if (after == sources.begin()) return std::nullopt;
    return *std::prev(after);
  }

  void check_divisibility();
  void check_attention();
  void check_layers();
  void check_sources();
  void check_candidates();
  void check_experts();
  void check_tokens();
  void check_engram();
  void check_dspark();
  void check_vision();

  const model_config& c_;
  const std::string& place_;
  config_problems& problems_;
};

void rule_set::check_divisibility() {
  divisible("hidden_size", c_.width);
  divisible("moe_intermediate_size", c_.expert_inner);
  divisible("q_lora_rank", c_.q_rank);
  divisible("head_dim", c_.head_dim);
  divisible("index_head_dim", c_.index_head_dim);
  if (!c_.engram.layers.empty()) divisible("engram_head_dim", c_.engram.head_dim);
  rule(
      {"o_groups", "o_lora_rank"}, [&] { return c_.o_groups * c_.o_rank % group == 0; },
      fmt::format("o_groups * o_lora_rank = {} must be divisible by {}", c_.o_groups * c_.o_rank,
                  group));
}

void rule_set::check_attention() {
  rule(
      {"qk_rope_head_dim"}, [&] { return c_.rope_dim % 2 == 0; },
      fmt::format("qk_rope_head_dim {} must be even", c_.rope_dim));
  rule(
      {"qk_rope_head_dim", "head_dim"}, [&] { return c_.rope_dim <= c_.head_dim; },
      fmt::format("qk_rope_head_dim {} must not exceed head_dim {}", c_.rope_dim, c_.head_dim));
  rule(
      {"qk_rope_head_dim", "index_head_dim"}, [&] { return c_.rope_dim <= c_.index_head_dim; },
      fmt::format("qk_rope_head_dim {} must not exceed index_head_dim {} (the indexer rotates as "
                  "many)",
                  c_.rope_dim, c_.index_head_dim));
  rule(
      {"num_attention_heads", "o_groups"}, [&] { return c_.heads % c_.o_groups == 0; },
      fmt::format("num_attention_heads {} must be divisible by o_groups {}", c_.heads,
                  c_.o_groups));
  rule(
      {"num_attention_heads", "o_groups", "head_dim"},
      [&] {
        return c_.heads % c_.o_groups != 0 || c_.heads / c_.o_groups * c_.head_dim % group == 0;
      },
      fmt::format("the width of an output group, num_attention_heads * head_dim / o_groups, must "
                  "be divisible by {}",
                  group));
}

void rule_set::check_layers() {
  const std::size_t expected = std::size_t{c_.layers} + c_.dspark.blocks;
  rule(
      {"compress_ratios", "num_hidden_layers", "num_nextn_predict_layers"},
      [&] { return c_.compress_ratios.size() == expected; },
      fmt::format("compress_ratios has {} entries, num_hidden_layers + num_nextn_predict_layers is "
                  "{}",
                  c_.compress_ratios.size(), expected));
  if (c_.compress_ratios.size() != expected) return;
  rule(
      {"compress_ratios", "num_hidden_layers", "num_nextn_predict_layers"},
      [&] {
        return std::all_of(c_.compress_ratios.begin() + c_.layers, c_.compress_ratios.end(),
                           [](std::uint32_t ratio) { return ratio == 0; });
      },
      "compress_ratios of DSpark blocks (the entries after num_hidden_layers) must be 0");
}

void rule_set::check_sources() {
  ascending("kv_source_layer_ids", c_.kv_sources);
  ascending("index_source_layer_ids", c_.index_sources);
  for (const std::uint32_t source : c_.kv_sources)
    rule(
        {"kv_source_layer_ids", "index_source_layer_ids"},
        [&] { return contains(c_.index_sources, source); },
        fmt::format("kv_source_layer_ids has {}, index_source_layer_ids does not", source));
  if (c_.compress_ratios.size() < c_.layers) return;
  for (const std::uint32_t source : c_.index_sources)
    rule(
        {"index_source_layer_ids", "compress_ratios", "num_hidden_layers"},
        [&] { return source >= c_.layers || c_.compress_ratios[source] >= 1; },
        fmt::format("index_source_layer_ids has {}, whose entry of compress_ratios is 0", source));
  for (std::uint32_t layer = 0; layer < c_.layers; ++layer) {
    const std::uint32_t ratio = c_.compress_ratios[layer];
    if (ratio == 0) continue;
    const auto owner = latest(c_.kv_sources, layer);
    rule(
        {"kv_source_layer_ids", "compress_ratios", "num_hidden_layers"},
        [&] { return owner.has_value(); },
        fmt::format("compress_ratios gives layer {} ratio {}, but no layer up to it is in "
                    "kv_source_layer_ids",
                    layer, ratio));
    if (!owner) return;  // one message, not one for each layer that follows
    rule(
        {"kv_source_layer_ids", "compress_ratios", "num_hidden_layers"},
        [&] { return c_.compress_ratios[*owner] == ratio; },
        fmt::format(
            "compress_ratios gives layer {} ratio {}, but it reads the entries of layer {}, "
            "whose ratio is {}",
            layer, ratio, *owner, c_.compress_ratios[*owner]));
  }
}

void rule_set::check_candidates() {
  if (!c_.candidate_source) return;
  const std::uint32_t source = *c_.candidate_source;
  rule(
      {"candidate_source_layer_id", "index_source_layer_ids"},
      [&] { return contains(c_.index_sources, source); },
      fmt::format("candidate_source_layer_id {} is not in index_source_layer_ids", source));
  for (const std::uint32_t user : c_.index_sources)
    rule(
        {"candidate_source_layer_id", "index_source_layer_ids", "kv_source_layer_ids"},
        [&] {
          return user <= source || latest(c_.kv_sources, user) == latest(c_.kv_sources, source);
        },
        fmt::format("index_source_layer_ids has {} after candidate_source_layer_id {}, but the two "
                    "read different layers of kv_source_layer_ids",
                    user, source));
  // The block of the newest entry is always kept and may hold that entry alone.
  const std::uint64_t reachable =
      std::uint64_t{c_.candidate_blocks - 1} * c_.candidate_block_size + 1;
  rule(
      {"candidate_topk_blocks", "candidate_block_size", "index_topk"},
      [&] { return reachable >= c_.index_topk; },
      fmt::format("(candidate_topk_blocks - 1) * candidate_block_size + 1 = {} must reach "
                  "index_topk {}",
                  reachable, c_.index_topk));
}

void rule_set::check_experts() {
  rule(
      {"num_experts_per_tok", "n_routed_experts"},
      [&] { return c_.experts_per_token <= c_.routed_experts; },
      fmt::format("num_experts_per_tok {} must not exceed n_routed_experts {}",
                  c_.experts_per_token, c_.routed_experts));
}

void rule_set::check_tokens() {
  in_vocabulary("bos_token_id", c_.bos_token);
  for (const std::int32_t token : c_.eos_tokens) in_vocabulary("eos_token_id", token);
  in_vocabulary("pad_token_id", c_.pad_token);
  if (c_.image_token >= 0) in_vocabulary("image_token_id", c_.image_token);
}

void rule_set::check_engram() {
  const engram_config& e = c_.engram;
  ascending("engram_layer_ids", e.layers);
  rule(
      {"engram_layer_ids", "engram_num_embeddings"},
      [&] { return e.layers.size() == e.rows.size(); },
      fmt::format("engram_num_embeddings has {} entries, engram_layer_ids {}", e.rows.size(),
                  e.layers.size()));
  if (e.layers.empty()) return;
  in_vocabulary("engram_pad_token_id", e.pad_token);
  rule(
      {"engram_compressed_vocab_size", "vocab_size"},
      [&] { return e.compressed_vocabulary <= c_.vocabulary; },
      fmt::format("engram_compressed_vocab_size {} must not exceed vocab_size {}",
                  e.compressed_vocabulary, c_.vocabulary));
  // Each column has a prime number of rows, at least engram_vocab_size.
  const std::uint64_t least = std::uint64_t{c_.engram_columns()} * e.bucket_start;
  for (const std::uint64_t rows : e.rows)
    rule(
        {"engram_num_embeddings", "engram_max_ngram_size", "engram_n_heads", "engram_vocab_size"},
        [&] { return rows >= least; },
        fmt::format("engram_num_embeddings {} is less than {} columns of engram_vocab_size {}",
                    rows, c_.engram_columns(), e.bucket_start));
}

void rule_set::check_dspark() {
  const dspark_config& d = c_.dspark;
  if (d.blocks == 0) return;
  ascending("dspark_target_layer_ids", d.target_layers);
  rule(
      {"dspark_target_layer_ids"}, [&] { return !d.target_layers.empty(); },
      "dspark_target_layer_ids must not be empty");
  in_vocabulary("dspark_noise_token_id", d.noise_token);
  rule(
      {"dspark_num_experts_per_tok", "dspark_n_routed_experts"},
      [&] { return d.experts_per_token <= d.routed_experts; },
      fmt::format("dspark_num_experts_per_tok {} must not exceed dspark_n_routed_experts {}",
                  d.experts_per_token, d.routed_experts));
}

void rule_set::check_vision() {
  const vision_config& v = c_.vision;
  if (v.layers == 0) return;
  // The tower rotates pairs (i, i + half) by rows in one half of the pairs and by columns in the
  // other.
  rule(
      {"vision_config"}, [&] { return v.width % v.heads == 0 && v.width / v.heads % 4 == 0; },
      fmt::format("vision_config: hidden_size {} over num_attention_heads {} must give heads "
                  "divisible by 4",
                  v.width, v.heads));
  rule(
      {"image_token_id"}, [&] { return c_.image_token >= 0; },
      "image_token_id is missing, but vision_config has layers");
}

}  // namespace

void check_rules(const model_config& config, const std::string& place, config_problems& problems) {
  rule_set(config, place, problems).check();
}

}  // namespace cedar::model
