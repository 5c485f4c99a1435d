#include "runtime/model/manifest.hpp"

#include <fmt/format.h>

#include "runtime/model/schedule.hpp"

namespace cedar::model {
namespace {

using kernels::dtype;

/// Scale blocks of the checkpoint's formats are 32 wide (FP8: 32 x 32).
constexpr std::uint64_t block = 32;

constexpr std::uint64_t blocks(std::uint64_t size) {
  return (size + block - 1) / block;
}

/// Appends tensors of one place (a layer, a DSpark block, ...) to the list.
class builder {
 public:
  explicit builder(const model_config& config) : c_(config), plan_(config) {}

  std::vector<expected_tensor> build() {
    part_ = component::embedding;
    plain("embed.weight", {c_.vocabulary, c_.width});
    if (c_.vision.layers > 0) add_vision();
    for (std::uint32_t layer = 0; layer < c_.layers; ++layer) add_layer(layer);
    enter(component::head);
    plain("norm.weight", {c_.width});
    plain("head.weight", {c_.vocabulary, c_.width});
    for (std::uint32_t index = 0; index < c_.dspark.blocks; ++index) add_dspark(index);
    return std::move(list_);
  }

 private:
  using shape = std::vector<std::uint64_t>;

  /// From here on tensors belong to `part` (outside of the draft blocks, where all are dspark).
  void enter(component part) {
    if (part_ != component::dspark) part_ = part;
  }
  void add(std::string_view name, dtype type, shape dimensions) {
    list_.push_back(
        {prefix_ + std::string(name), type, std::move(dimensions), part_, layer_, expert_});
  }
  void plain(std::string_view name, shape dimensions) {
    add(name, dtype::bf16, std::move(dimensions));
  }
  void real(std::string_view name, shape dimensions) {
    add(name, dtype::f32, std::move(dimensions));
  }
  void fp8(const std::string& name, std::uint64_t out, std::uint64_t in) {
    add(name + ".weight", dtype::f8_e4m3, {out, in});
    add(name + ".scale", dtype::f8_e8m0, {blocks(out), blocks(in)});
  }
  void fp4(const std::string& name, std::uint64_t out, std::uint64_t in) {
    add(name + ".weight", dtype::i8, {out, in / 2});
    add(name + ".scale", dtype::f8_e8m0, {out, blocks(in)});
  }

  void add_layer(std::uint32_t layer);
  void add_hyper_connections();
  void add_attention();
  void add_compressor(std::uint32_t ratio);
  void add_indexer(bool makes_keys);
  void add_experts(std::uint32_t count);
  void add_engram(std::uint32_t module);
  void add_dspark(std::uint32_t index);
  void add_vision();

  const model_config& c_;
  schedule plan_;
  std::vector<expected_tensor> list_;
  std::string prefix_;
  component part_ = component::embedding;
  std::optional<std::uint32_t> layer_;
  std::optional<std::uint32_t> expert_;
};

void builder::add_hyper_connections() {
  enter(component::hyper_connection);
  const std::uint64_t n = c_.streams;
  const std::uint64_t coefficients = (2 + n) * n;  // pre and post of n each, an n x n matrix
  for (const std::string sublayer : {"hc_attn_", "hc_ffn_"}) {
    real(sublayer + "fn", {coefficients, n * c_.width});
    real(sublayer + "base", {coefficients});
    real(sublayer + "scale", {3});
  }
}

void builder::add_attention() {
  enter(component::attention);
  const std::uint64_t all_heads = std::uint64_t{c_.heads} * c_.head_dim;
  const std::uint64_t low_rank = std::uint64_t{c_.o_groups} * c_.o_rank;
  plain("attn_norm.weight", {c_.width});
  real("attn.attn_sink", {c_.heads});
  fp8("attn.wq_a", c_.q_rank, c_.width);
  plain("attn.q_norm.weight", {c_.q_rank});
  fp8("attn.wq_b", all_heads, c_.q_rank);
  fp8("attn.wkv", c_.head_dim, c_.width);
  plain("attn.kv_norm.weight", {c_.head_dim});
  fp8("attn.wo_a", low_rank, all_heads / c_.o_groups);
  fp8("attn.wo_b", c_.width, low_rank);
}

void builder::add_compressor(std::uint32_t ratio) {
  enter(component::compressor);
  plain("attn.compressor.wkv.weight", {c_.head_dim, c_.width});
  // A group of one token has nothing to weigh.
  if (ratio > 1) plain("attn.compressor.wgate.weight", {c_.head_dim, c_.width});
  plain("attn.compressor.norm.weight", {c_.head_dim});
}

void builder::add_indexer(bool makes_keys) {
  enter(component::indexer);
  fp8("attn.indexer.wq_b", std::uint64_t{c_.index_heads} * c_.index_head_dim, c_.q_rank);
  plain("attn.indexer.weights_proj.weight", {c_.index_heads, c_.width});
  if (!makes_keys) return;
  plain("attn.indexer.wk.weight", {c_.index_head_dim, c_.head_dim});
  plain("attn.indexer.k_norm.weight", {c_.index_head_dim});
}

void builder::add_experts(std::uint32_t count) {
  enter(component::router);
  plain("ffn_norm.weight", {c_.width});
  plain("ffn.gate.weight", {count, c_.width});
  real("ffn.gate.bias", {count});
  real("ffn.gate.bias_vl", {count});
  enter(component::experts);
  for (std::uint32_t expert = 0; expert < count; ++expert) {
    expert_ = expert;
    const std::string name = fmt::format("ffn.experts.{}.", expert);
    fp4(name + "w1", c_.expert_inner, c_.width);
    fp4(name + "w2", c_.width, c_.expert_inner);
    fp4(name + "w3", c_.expert_inner, c_.width);
  }
  expert_.reset();
  enter(component::shared_expert);
  fp8("ffn.shared_experts.w1", c_.expert_inner, c_.width);
  fp8("ffn.shared_experts.w2", c_.width, c_.expert_inner);
  fp8("ffn.shared_experts.w3", c_.expert_inner, c_.width);
}

void builder::add_engram(std::uint32_t module) {
  const engram_config& e = c_.engram;
  enter(component::engram_table);
  add("engram.embed.weight", dtype::f8_e4m3, {e.rows.at(module), e.head_dim});
  add("engram.embed.scale", dtype::f8_e8m0, {e.rows.at(module), blocks(e.head_dim)});
  enter(component::engram);
  // A key for each stream, and one value.
  fp8("engram.wkv", (std::uint64_t{c_.streams} + 1) * c_.width,
      std::uint64_t{c_.engram_columns()} * e.head_dim);
  plain("engram.q_weight", {c_.streams, c_.width});
  plain("engram.k_weight", {c_.streams, c_.width});
}

void builder::add_layer(std::uint32_t layer) {
  const layer_schedule& role = plan_[layer];
  layer_ = layer;
  prefix_ = fmt::format("layers.{}.", layer);
  add_attention();
  if (role.mode == layer_mode::full) add_compressor(role.ratio);
  if (role.mode == layer_mode::full || role.mode == layer_mode::reindex)
    add_indexer(role.mode == layer_mode::full);
  add_hyper_connections();
  add_experts(c_.routed_experts);
  if (role.engram) add_engram(*role.engram);
  prefix_.clear();
  layer_.reset();
}

void builder::add_dspark(std::uint32_t index) {
  part_ = component::dspark;
  layer_ = index;
  prefix_ = fmt::format("mtp.{}.", index);
  add_attention();
  add_hyper_connections();
  add_experts(c_.dspark.routed_experts);
  if (index == 0) {
    fp8("main_proj", c_.width, c_.dspark.target_layers.size() * c_.width);
    plain("main_norm.weight", {c_.width});
  }
  if (index + 1 == c_.dspark.blocks) {
    plain("norm.weight", {c_.width});
    plain("markov_head.embed.weight", {c_.vocabulary, c_.dspark.markov_rank});
    plain("markov_head.head.weight", {c_.vocabulary, c_.dspark.markov_rank});
    plain("confidence_head.proj.weight", {1, std::uint64_t{c_.width} + c_.dspark.markov_rank});
  }
}

void builder::add_vision() {
  const vision_config& v = c_.vision;
  enter(component::vision);
  for (const char* name : {"image_start", "image_end", "image_newline"}) plain(name, {c_.width});
  const std::uint64_t pixels = std::uint64_t{3} * v.patch * v.patch;  // three colours
  plain("vision.patch_embed.proj.weight", {v.width, pixels});
  plain("vision.patch_embed.proj.bias", {v.width});
  for (std::uint32_t layer = 0; layer < v.layers; ++layer) {
    layer_ = layer;
    prefix_ = fmt::format("vision.blocks.{}.", layer);
    plain("norm1.weight", {v.width});
    plain("norm2.weight", {v.width});
    plain("attn.wqkv.weight", {std::uint64_t{3} * v.width, v.width});
    plain("attn.wqkv.bias", {std::uint64_t{3} * v.width});
    plain("attn.wo.weight", {v.width, v.width});
    plain("attn.wo.bias", {v.width});
    plain("mlp.w1.weight", {std::uint64_t{2} * v.inner, v.width});  // gate and up halves
    plain("mlp.w2.weight", {v.width, v.inner});
  }
  prefix_.clear();
  layer_.reset();
  const std::uint64_t cell = std::uint64_t{v.downsample} * v.downsample * v.width;
  plain("vision.norm.weight", {v.width});
  plain("aligner.w1.weight", {c_.width, cell});
  plain("aligner.w1.bias", {c_.width});
  plain("aligner.w2.weight", {c_.width, c_.width});
  plain("aligner.w2.bias", {c_.width});
}

}  // namespace

std::string_view to_string(component part) noexcept {
  switch (part) {
    case component::embedding:
      return "embedding";
    case component::attention:
      return "attention";
    case component::compressor:
      return "compressor";
    case component::indexer:
      return "indexer";
    case component::hyper_connection:
      return "hyper-connection";
    case component::router:
      return "router";
    case component::experts:
      return "experts";
    case component::shared_expert:
      return "shared expert";
    case component::engram:
      return "engram";
    case component::engram_table:
      return "engram table";
    case component::head:
      return "head";
    case component::dspark:
      return "dspark";
    case component::vision:
      return "vision";
  }
  return "?";
}

std::uint64_t expected_tensor::bytes() const noexcept {
  // The configuration's bounds keep every product inside 64 bits.
  return *store::element_count(shape) * kernels::element_bytes(dtype);
}

std::uint64_t expected_tensor::parameters() const noexcept {
  if (dtype == kernels::dtype::f8_e8m0) return 0;
  const std::uint64_t values_per_element = dtype == kernels::dtype::i8 ? 2 : 1;
  return *store::element_count(shape) * values_per_element;
}

std::vector<expected_tensor> manifest(const model_config& config) {
  return builder(config).build();
}

std::vector<component_total> totals(std::span<const expected_tensor> tensors) {
  std::vector<component_total> sums(component_count);
  for (const expected_tensor& tensor : tensors) {
    component_total& sum = sums[static_cast<std::size_t>(tensor.part)];
    sum.part = tensor.part;
    sum.tensors += 1;
    sum.parameters += tensor.parameters();
    sum.bytes += tensor.bytes();
  }
  std::erase_if(sums, [](const component_total& sum) { return sum.tensors == 0; });
  return sums;
}

bool in_text_model(const expected_tensor& tensor) noexcept {
  return tensor.part != component::dspark && tensor.part != component::vision;
}

bool in_drafter(const expected_tensor& tensor) noexcept {
  return tensor.part == component::dspark || tensor.name == "embed.weight" ||
         tensor.name == "head.weight";
}

}  // namespace cedar::model
