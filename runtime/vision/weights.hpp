// The vision tower's tensors, as views into the mapped checkpoint (runtime/model/manifest lists
// them).
#pragma once

#include <span>
#include <vector>

#include "kernels/base/dtype.hpp"
#include "kernels/base/matrix_view.hpp"
#include "runtime/base/result.hpp"
#include "runtime/model/config.hpp"
#include "runtime/store/checkpoint.hpp"

namespace cedar::vision {

using kernels::bf16;
using kernels::matrix_view;

/// A linear layer; `bias` may be empty.
struct linear_weights {
  matrix_view<const bf16> weight;  ///< [o, k]
  std::span<const bf16> bias;  ///< [o]
};

/// One block of the encoder; w = its width, i = its inner width.
struct block_weights {
  std::span<const bf16> norm1;  ///< [w]
  linear_weights wqkv;  ///< [3w, w]: q, k, v, heads inside each
  linear_weights wo;  ///< [w, w]
  std::span<const bf16> norm2;  ///< [w]
  linear_weights w1;  ///< [2i, w]: gate, up; no bias
  linear_weights w2;  ///< [w, i]; no bias
};

struct encoder_weights {
  linear_weights patches;  ///< [w, 3 * patch * patch]
  std::vector<block_weights> blocks;
  std::span<const bf16> norm;  ///< [w]
};

/// d = the text model's width, r = downsample.
struct aligner_weights {
  linear_weights w1;  ///< [d, r * r * w]
  linear_weights w2;  ///< [d, d]
};

/// Learned embeddings of what stands between the images of a span.
struct delimiter_weights {
  std::span<const bf16> start;  ///< [d]
  std::span<const bf16> newline;  ///< [d]
  std::span<const bf16> end;  ///< [d]
};

struct tower_weights {
  encoder_weights encoder;
  aligner_weights aligner;
  delimiter_weights delimiters;
};

/// Maps the tower's tensors and no others; shapes and dtypes are checked again here, so that a view
/// of a wrong shape can never reach a kernel. Valid while the checkpoint lives. Errors: not_found,
/// mismatch, naming the tensor; invalid_argument: the configuration has no tower.
result<tower_weights> load_tower(const store::checkpoint& checkpoint,
                                 const model::model_config& config);

}  // namespace cedar::vision
