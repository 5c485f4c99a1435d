#include "runtime/stage/drafter_sequence.hpp"

#include <algorithm>
#include <string>

#include "runtime/model/compressor.hpp"
#include "runtime/stage/sequence_state.hpp"

namespace cedar::stage {

std::uint32_t drafter_ring_rows(const model::model_config& config) noexcept {
  return config.window + ring_slack(config);
}

drafter_sequence::drafter_sequence(const model::model_config& config)
    : taps_(drafter_ring_rows(config),
            config.dspark.target_layers.size() * config.width * sizeof(kernels::bf16)),
      window_(config.window) {
  const std::size_t bytes = kernels::entry_bytes(model::window_entry_format, config.head_dim);
  for (std::uint32_t block = 0; block < config.dspark.blocks; ++block)
    rings_.emplace_back(drafter_ring_rows(config), bytes);
}

void drafter_sequence::begin(std::uint32_t first) noexcept {
  first_ = written_ = highest_ = computed_ = first;
}

/// The first row whose taps are still there.
std::uint32_t drafter_sequence::kept_from() const noexcept {
  const std::uint32_t capacity = taps_.capacity();
  return std::max(first_, highest_ > capacity ? highest_ - capacity : 0);
}

std::uint32_t drafter_sequence::entries_begin() const noexcept {
  return std::min(std::max(computed_, kept_from()), written_);
}

std::uint32_t drafter_sequence::needed_before(std::uint32_t positions) const noexcept {
  return std::max(first_, positions > window_ ? positions - window_ : 0);
}

void drafter_sequence::extend(step_id step, std::uint32_t positions) noexcept {
  last_step_ = step;
  written_ = positions;
  highest_ = std::max(highest_, positions);
}

result<void> drafter_sequence::commit(step_id step, std::uint32_t positions) {
  if (step > last_step_)
    return fail(errc::mismatch, "the verdict came before the rows that it is about");
  if (step != last_step_ || positions >= written_) return {};
  if (positions <= first_) {
    written_ = computed_ = first_;
    return {};
  }
  if (needed_before(positions) < kept_from())
    return fail(errc::mismatch, "rows " + std::to_string(needed_before(positions)) + ".." +
                                    std::to_string(positions) +
                                    " would be seen again, those before " +
                                    std::to_string(kept_from()) + " are gone");
  written_ = positions;
  computed_ = std::min(computed_, positions);
  return {};
}

}  // namespace cedar::stage
