// The full list of tensors that a configuration implies, and whether a checkpoint has exactly
// those.
//
// Source: DeepSeek-V4.1-Flash's released checkpoint (names, dtypes, shapes); the list of the
// released configuration has 96,085 tensors of 510,286,023,000 bytes.
// 1. Every tensor is checked before any token, also those that nothing reads yet, so that a
// checkpoint
//    is never found wrong later.
// 2. What lies in files that are not on this host is an error only for units that are placed here.
// Engram rows are compared with the configuration; that they are the sum of the module's primes is
// engram_hash's business.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/dtype.hpp"
#include "runtime/base/result.hpp"
#include "runtime/model/config.hpp"
#include "runtime/store/checkpoint.hpp"

namespace cedar::model {

/// What a tensor belongs to; the rows of an inspection, in this order.
enum class component : std::uint8_t {
  embedding,
  attention,  ///< queries, window KV, output; the norm before them
  compressor,  ///< global KV of an owner
  indexer,  ///< selection, and the index keys of an owner
  hyper_connection,  ///< mHC coefficients of both sublayers
  router,  ///< gate and biases; the norm before them
  experts,  ///< routed experts
  shared_expert,
  engram,  ///< projection and gate of a module
  engram_table,  ///< rows of a module
  head,  ///< final norm and vocabulary projection
  dspark,  ///< everything of the draft blocks
  vision,  ///< tower, aligner and image delimiters
};
inline constexpr std::size_t component_count = 13;

std::string_view to_string(component part) noexcept;

struct expected_tensor {
  std::string name;
  kernels::dtype dtype = kernels::dtype::bf16;
  std::vector<std::uint64_t> shape;
  component part = component::embedding;
  std::optional<std::uint32_t> layer;  ///< backbone layer, or DSpark or vision block
  std::optional<std::uint32_t> expert;  ///< routed expert

  std::uint64_t bytes() const noexcept;
  /// Values that training set: packed FP4 counts twice, scales not at all.
  std::uint64_t parameters() const noexcept;
};

/// Every tensor of `config`, grouped by layer.
std::vector<expected_tensor> manifest(const model_config& config);

struct component_total {
  component part = component::embedding;
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
};

/// Sums by component, in the order of the enumeration; components without tensors are left out.
std::vector<component_total> totals(std::span<const expected_tensor> tensors);

/// Which tensors a process reads.
using placement = std::function<bool(const expected_tensor&)>;

/// The text model without its draft blocks: all but DSpark and vision.
bool in_text_model(const expected_tensor& tensor) noexcept;

/// What the drafter reads: the draft blocks, and the embedding and vocabulary projection that they
/// share with the backbone.
bool in_drafter(const expected_tensor& tensor) noexcept;

/// All differences, by name; each entry is a message of one tensor.
struct manifest_check {
  std::vector<std::string> missing;
  std::vector<std::string> extra;
  std::vector<std::string> misshaped;
  std::vector<std::string> mistyped;
  std::vector<std::string> not_here;  ///< placed, but in a file that is not on this host
  std::vector<component_total> not_placed;  ///< in the checkpoint, read by nobody

  bool ok() const noexcept;
  /// Nothing, or all differences, one a line (20 of each kind at most, then their number), with
  /// `name` in front. Errors: not_found if tensors are only missing or not here, else mismatch.
  result<void> outcome(const std::string& name) const;
};

manifest_check check(std::span<const expected_tensor> expected, const store::checkpoint& found,
                     const placement& placed = in_text_model);

}  // namespace cedar::model
