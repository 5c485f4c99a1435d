// The whole tower behind one call: a prepared image in, the embeddings of its span out. What a
// placed vision unit holds.
#pragma once

#include "kernels/base/buffer.hpp"
#include "runtime/image/prepare.hpp"
#include "runtime/vision/aligner.hpp"
#include "runtime/vision/span.hpp"

namespace cedar::vision {

/// How a configuration's images are planned.
image::image_rules rules_of(const model::vision_config& config);

class tower {
 public:
  /// Errors: those of load_tower. `checkpoint` and `backend` outlive the tower.
  static result<tower> open(const store::checkpoint& checkpoint, const model::model_config& config,
                            const kernels::backend& backend);

  /// Embeddings [plan.span_tokens(), d] of one image; they depend on the image alone. Errors:
  /// invalid_argument: plan and patches do not fit each other or the configuration. Not for two
  /// threads at once: the scratch memory is the tower's (about 20 KiB a patch at the released
  /// size).
  result<kernels::matrix_buffer<bf16>> embed(const image::image_plan& plan,
                                             matrix_view<const bf16> patches,
                                             const model::taps& probes = {});

  const tower_weights& weights() const noexcept { return weights_; }

 private:
  tower(const model::model_config& config, tower_weights weights, const kernels::backend& backend)
      : config_(config.vision),
        width_(config.width),
        weights_(std::move(weights)),
        backend_(&backend) {}

  result<void> check(const image::image_plan& plan, matrix_view<const bf16> patches) const;

  model::vision_config config_;
  std::uint32_t width_;
  tower_weights weights_;
  const kernels::backend* backend_;
  kernels::arena scratch_;
};

}  // namespace cedar::vision
