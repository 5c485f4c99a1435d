#include "runtime/vision/weights.hpp"

#include <optional>
#include <string>

namespace cedar::vision {

namespace {

/// Fetches tensors and remembers the first failure, so that the binding reads as a list of names.
class binder {
 public:
  explicit binder(const store::checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  std::span<const bf16> vector(const std::string& name, std::uint64_t size) {
    return fetch(name, {size});
  }

  matrix_view<const bf16> matrix(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    return {fetch(name, {rows, cols}).data(), rows, cols};
  }

  linear_weights linear(const std::string& name, std::uint64_t outputs, std::uint64_t inputs) {
    return {matrix(name + ".weight", outputs, inputs), vector(name + ".bias", outputs)};
  }

  const std::optional<error>& failure() const { return failure_; }

 private:
  std::span<const bf16> fetch(const std::string& name, std::vector<std::uint64_t> shape) {
    if (failure_) return {};
    const result<std::span<const bf16>> elements =
        store::elements_of<bf16>(checkpoint_, name, shape);
    if (elements) return *elements;
    failure_ = elements.error();
    return {};
  }

  const store::checkpoint& checkpoint_;
  std::optional<error> failure_;
};

block_weights bind_block(binder& b, const model::vision_config& v, const std::string& prefix) {
  const std::uint64_t width = v.width;
  block_weights out;
  out.norm1 = b.vector(prefix + "norm1.weight", width);
  out.wqkv = b.linear(prefix + "attn.wqkv", 3 * width, width);
  out.wo = b.linear(prefix + "attn.wo", width, width);
  out.norm2 = b.vector(prefix + "norm2.weight", width);
  out.w1 = {b.matrix(prefix + "mlp.w1.weight", std::uint64_t{2} * v.inner, width), {}};
  out.w2 = {b.matrix(prefix + "mlp.w2.weight", width, v.inner), {}};
  return out;
}

encoder_weights bind_encoder(binder& b, const model::vision_config& v) {
  encoder_weights out;
  out.patches = b.linear("vision.patch_embed.proj", v.width, std::uint64_t{3} * v.patch * v.patch);
  for (std::uint32_t i = 0; i < v.layers; ++i)
    out.blocks.push_back(bind_block(b, v, "vision.blocks." + std::to_string(i) + "."));
  out.norm = b.vector("vision.norm.weight", v.width);
  return out;
}

}  // namespace

result<tower_weights> load_tower(const store::checkpoint& checkpoint,
                                 const model::model_config& config) {
  const model::vision_config& v = config.vision;
  if (v.layers == 0)
    return fail(errc::invalid_argument,
                "the model has no vision tower (vision_config has no "
                "layers): it cannot read images");
  binder b(checkpoint);
  const std::uint64_t width = config.width;
  tower_weights out;
  out.encoder = bind_encoder(b, v);
  out.aligner.w1 =
      b.linear("aligner.w1", width, std::uint64_t{v.downsample} * v.downsample * v.width);
  out.aligner.w2 = b.linear("aligner.w2", width, width);
  out.delimiters = {b.vector("image_start", width), b.vector("image_newline", width),
                    b.vector("image_end", width)};
  if (b.failure()) return fail(*b.failure());
  return out;
}

}  // namespace cedar::vision
