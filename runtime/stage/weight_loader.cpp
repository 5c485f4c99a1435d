#include "runtime/stage/weight_loader.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

namespace cedar::stage {

using kernels::bf16;
using kernels::matrix_view;

namespace {

/// Fetches tensors of one prefix and remembers the first failure, so that a unit's binding reads as
/// a list of names.
class binder {
 public:
  binder(const store::checkpoint& checkpoint, std::string prefix)
      : checkpoint_(checkpoint), prefix_(std::move(prefix)) {}

  template <class T>
  matrix_view<const T> matrix(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    const std::span<const T> elements = fetch<T>(name, {rows, cols});
    if (elements.empty()) return {};
    return {elements.data(), rows, cols};
  }

  /// Rows [first, first + count) of a matrix.
  template <class T>
  matrix_view<const T> rows(const std::string& name, std::uint64_t all, std::uint64_t cols,
                            std::uint64_t first, std::uint64_t count) {
    if (failure_) return {};
    const result<std::span<const T>> elements = store::elements_of_rows<T>(
        checkpoint_, prefix_ + name, std::array{all, cols}, first, count);
    if (elements) return {elements->data(), count, cols};
    failure_ = elements.error();
    return {};
  }

  template <class T>
  std::span<const T> vector(const std::string& name, std::uint64_t size) {
    return fetch<T>(name, {size});
  }

  kernels::fp8_weight_view fp8(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    return {matrix<std::uint8_t>(name + ".weight", rows, cols),
            matrix<std::uint8_t>(name + ".scale", (rows + 31) / 32, cols / 32)};
  }

  kernels::fp4_weight_view fp4(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    return {matrix<std::uint8_t>(name + ".weight", rows, cols / 2),
            matrix<std::uint8_t>(name + ".scale", rows, cols / 32)};
  }

  result<void> outcome() const {
    if (failure_) return fail(*failure_);
    return {};
  }

  template <class T>
  result<T> finish(T value) {
    if (failure_) return fail(*failure_);
    return value;
  }

 private:
  template <class T>
  std::span<const T> fetch(const std::string& name, std::vector<std::uint64_t> shape) {
    if (failure_) return {};
    const result<std::span<const T>> elements =
        store::elements_of<T>(checkpoint_, prefix_ + name, shape);
    if (elements) return *elements;
    failure_ = elements.error();
    return {};
  }

  const store::checkpoint& checkpoint_;
  std::string prefix_;
  std::optional<error> failure_;
};

model::hyper_connection_weights bind_hc(binder& b, const model::model_config& config,
                                        const std::string& name) {
  const std::uint64_t s = config.streams;
  const std::uint64_t outputs = (2 + s) * s;
  return {b.matrix<float>(name + "_fn", outputs, s * config.width),
          b.vector<float>(name + "_base", outputs), b.vector<float>(name + "_scale", 3)};
}

model::compressor_weights bind_compressor(binder& b, const model::model_config& config,
                                          std::uint32_t ratio) {
  model::compressor_weights out;
  out.wkv = b.matrix<bf16>("attn.compressor.wkv.weight", config.head_dim, config.width);
  if (ratio > 1)
    out.wgate = b.matrix<bf16>("attn.compressor.wgate.weight", config.head_dim, config.width);
  out.norm = b.vector<bf16>("attn.compressor.norm.weight", config.head_dim);
  return out;
}

model::indexer_weights bind_indexer(binder& b, const model::model_config& config, bool owns_keys) {
  model::indexer_weights out;
  const std::uint64_t width = config.index_head_dim;
  out.wq_b = b.fp8("attn.indexer.wq_b", config.index_heads * width, config.q_rank);
  out.weights_proj =
      b.matrix<bf16>("attn.indexer.weights_proj.weight", config.index_heads, config.width);
  if (owns_keys) {
    out.wk = b.matrix<bf16>("attn.indexer.wk.weight", width, config.head_dim);
    out.k_norm = b.vector<bf16>("attn.indexer.k_norm.weight", width);
  }
  return out;
}

model::attention_weights bind_attention(binder& b, const model::model_config& config,
                                        const model::layer_schedule& entry) {
  const std::uint64_t q_width = std::uint64_t{config.heads} * config.head_dim;
  const std::uint64_t o_width = std::uint64_t{config.o_groups} * config.o_rank;
  model::attention_weights out;
  out.hc = bind_hc(b, config, "hc_attn");
  out.norm = b.vector<bf16>("attn_norm.weight", config.width);
  out.sinks = b.vector<float>("attn.attn_sink", config.heads);
  out.wq_a = b.fp8("attn.wq_a", config.q_rank, config.width);
  out.q_norm = b.vector<bf16>("attn.q_norm.weight", config.q_rank);
  out.wq_b = b.fp8("attn.wq_b", q_width, config.q_rank);
  out.wkv = b.fp8("attn.wkv", config.head_dim, config.width);
  out.kv_norm = b.vector<bf16>("attn.kv_norm.weight", config.head_dim);
  out.wo_a = b.fp8("attn.wo_a", o_width, q_width / config.o_groups);
  out.wo_b = b.fp8("attn.wo_b", config.width, o_width);
  const bool owns = entry.mode == model::layer_mode::full;
  if (owns) out.compressor = bind_compressor(b, config, entry.ratio);
  if (owns || entry.mode == model::layer_mode::reindex) out.indexer = bind_indexer(b, config, owns);
  return out;
}

/// Routed experts 0..routed-1; those that are not `wanted` are not present.
std::vector<model::expert_weights> bind_experts(binder& b, const model::model_config& config,
                                                std::uint32_t routed,
                                                const std::function<bool(std::uint32_t)>& wanted) {
  std::vector<model::expert_weights> out(routed);
  const std::uint64_t d = config.width;
  const std::uint64_t inner = config.expert_inner;
  for (std::uint32_t e = 0; e < routed; ++e) {
    if (!wanted(e)) continue;
    const std::string name = "ffn.experts." + std::to_string(e);
    out[e] = {b.fp4(name + ".w1", inner, d), b.fp4(name + ".w2", d, inner),
              b.fp4(name + ".w3", inner, d)};
  }
  return out;
}

/// `routed` experts, of which a row has `per_token`: draft blocks have their own numbers.
model::moe_weights bind_moe(
    binder& b, const model::model_config& config, std::uint32_t routed, std::uint32_t per_token,
    const std::function<bool(std::uint32_t)>& wanted = [](std::uint32_t) { return true; }) {
  model::moe_weights out;
  const std::uint64_t d = config.width;
  const std::uint64_t inner = config.expert_inner;
  out.hc = bind_hc(b, config, "hc_ffn");
  out.norm = b.vector<bf16>("ffn_norm.weight", d);
  out.gate = b.matrix<bf16>("ffn.gate.weight", routed, d);
  out.bias = b.vector<float>("ffn.gate.bias", routed);
  out.bias_vl = b.vector<float>("ffn.gate.bias_vl", routed);
  out.experts = bind_experts(b, config, routed, wanted);
  out.experts_per_token = per_token;
  out.shared = {b.fp8("ffn.shared_experts.w1", inner, d), b.fp8("ffn.shared_experts.w2", d, inner),
                b.fp8("ffn.shared_experts.w3", inner, d)};
  return out;
}

model::engram_weights bind_engram(binder& b, const model::model_config& config) {
  const std::uint64_t s = config.streams;
  return {b.fp8("engram.wkv", (s + 1) * config.width,
                std::uint64_t{config.engram_columns()} * config.engram.head_dim),
          b.matrix<bf16>("engram.q_weight", s, config.width),
          b.matrix<bf16>("engram.k_weight", s, config.width)};
}

std::string layer_prefix(std::uint32_t layer) {
  return "layers." + std::to_string(layer) + ".";
}

std::string block_prefix(std::uint32_t block) {
  return "mtp." + std::to_string(block) + ".";
}

}  // namespace

result<model::layer_weights> load_layer(const store::checkpoint& checkpoint,
                                        const model::model_config& config,
                                        const model::schedule& schedule, std::uint32_t layer,
                                        std::span<const model::expert_slice> elsewhere) {
  binder b(checkpoint, layer_prefix(layer));
  const model::layer_schedule& entry = schedule[layer];
  const auto here = [&](std::uint32_t expert) {
    return std::ranges::none_of(
        elsewhere, [&](const model::expert_slice& slice) { return slice.holds(layer, expert); });
  };
  model::layer_weights out{
      bind_attention(b, config, entry),
      bind_moe(b, config, config.routed_experts, config.experts_per_token, here),
      {}};
  if (entry.engram) out.engram = bind_engram(b, config);
  return b.finish(std::move(out));
}

result<std::vector<model::expert_weights>> load_experts(const store::checkpoint& checkpoint,
                                                        const model::model_config& config,
                                                        std::uint32_t layer,
                                                        const model::expert_slice& slice) {
  binder b(checkpoint, layer_prefix(layer));
  return b.finish(bind_experts(b, config, config.routed_experts,
                               [&](std::uint32_t expert) { return slice.holds(layer, expert); }));
}

result<matrix_view<const bf16>> load_embedding(const store::checkpoint& checkpoint,
                                               const model::model_config& config) {
  binder b(checkpoint, "");
  return b.finish(b.matrix<bf16>("embed.weight", config.vocabulary, config.width));
}

result<model::head_weights> load_head(const store::checkpoint& checkpoint,
                                      const model::model_config& config) {
  binder b(checkpoint, "");
  model::head_weights out{b.vector<bf16>("norm.weight", config.width),
                          b.matrix<bf16>("head.weight", config.vocabulary, config.width)};
  return b.finish(out);
}

result<model::engram_table_weights> load_engram_rows(const store::checkpoint& checkpoint,
                                                     const model::model_config& config,
                                                     const model::engram_shard& shard) {
  const model::engram_config& engram = config.engram;
  const auto module = std::ranges::find(engram.layers, shard.layer) - engram.layers.begin();
  const std::uint64_t rows = engram.rows.at(static_cast<std::size_t>(module));
  binder b(checkpoint, layer_prefix(shard.layer));
  model::engram_table_weights out{
      b.rows<std::uint8_t>("engram.embed.weight", rows, engram.head_dim, shard.first_row,
                           shard.rows_count()),
      b.rows<std::uint8_t>("engram.embed.scale", rows, engram.head_dim / 32, shard.first_row,
                           shard.rows_count())};
  return b.finish(out);
}

result<model::drafter_weights> load_drafter(const store::checkpoint& checkpoint,
                                            const model::model_config& config) {
  const model::dspark_config& dspark = config.dspark;
  if (dspark.blocks == 0)
    return fail(errc::not_found, checkpoint.folder().string() +
                                     ": the model has no draft blocks (num_nextn_predict_layers)");
  const std::uint64_t d = config.width;
  const std::uint64_t vocabulary = config.vocabulary;
  model::drafter_weights out;
  for (std::uint32_t block = 0; block < dspark.blocks; ++block) {
    binder b(checkpoint, block_prefix(block));
    const model::layer_schedule window_only;
    out.blocks.push_back({bind_attention(b, config, window_only),
                          bind_moe(b, config, dspark.routed_experts, dspark.experts_per_token),
                          {}});
    if (const result<void> bound = b.outcome(); !bound) return fail(bound.error());
  }
  binder first(checkpoint, block_prefix(0));
  out.main_proj = first.fp8("main_proj", d, dspark.target_layers.size() * d);
  out.main_norm = first.vector<bf16>("main_norm.weight", d);
  if (const result<void> bound = first.outcome(); !bound) return fail(bound.error());
  binder last(checkpoint, block_prefix(dspark.blocks - 1));
  out.norm = last.vector<bf16>("norm.weight", d);
  out.markov_embedding =
      last.matrix<bf16>("markov_head.embed.weight", vocabulary, dspark.markov_rank);
  out.markov_head = last.matrix<bf16>("markov_head.head.weight", vocabulary, dspark.markov_rank);
  out.confidence = last.matrix<bf16>("confidence_head.proj.weight", 1, d + dspark.markov_rank);
  if (const result<void> bound = last.outcome(); !bound) return fail(bound.error());
  binder shared(checkpoint, "");
  out.embedding = shared.matrix<bf16>("embed.weight", vocabulary, d);
  out.head = shared.matrix<bf16>("head.weight", vocabulary, d);
  return shared.finish(std::move(out));
}

}  // namespace cedar::stage
