// How far the logits of two runs of the same rows are from each other.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/ids.hpp"

namespace cedar::tools {

/// Sums over rows; the means are what is reported.
class logit_distance {
 public:
  /// A row of the reference and of another run: [vocabulary] each, finite, of the same length.
  void add(std::span<const float> reference, std::span<const float> other);

  std::uint64_t rows() const noexcept { return rows_; }
  /// Root of the mean square of the difference, over that of the reference. 0 without rows.
  double relative_rms() const noexcept;
  /// Mean of KL(softmax(reference) || softmax(other)) in nats. 0 without rows.
  double mean_kl() const noexcept;
  /// Rows with the same arg max (ties: the lower id), as a share. 1 without rows.
  double top1_agreement() const noexcept;

 private:
  std::uint64_t rows_ = 0;
  std::uint64_t agreeing_ = 0;
  double difference_ = 0;  ///< sum of squares
  double reference_ = 0;  ///< sum of squares
  double kl_ = 0;
};

/// The arg max; ties go to the lower id. `logits` is not empty.
token_id top1(std::span<const float> logits) noexcept;

}  // namespace cedar::tools
