#include "runtime/stage/drafter_sequence.hpp"

#include <algorithm>
#include <string>

#include "runtime/model/compressor.hpp"
#include "runtime/stage/sequence_state.hpp"

namespace cedar::stage {

std::uint32_t drafter_ring_rows(const model::model_config& config) noexcept {
  return config.window + ring_slack(config);
}

drafter_sequence::drafter_sequence(const model::model_config& config, std::uint32_t first)
    : window_(config.window), first_(first), written_(first), highest_(first) {
  const std::size_t bytes = kernels::entry_bytes(model::window_entry_format, config.head_dim);
  for (std::uint32_t block = 0; block < config.dspark.blocks; ++block)
    rings_.emplace_back(drafter_ring_rows(config), bytes);
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
    written_ = first_;
    return {};
  }
  const std::uint32_t capacity = rings_.front().capacity();
  const std::uint32_t kept_from = std::max(first_, highest_ > capacity ? highest_ - capacity : 0);
  if (needed_before(positions) < kept_from)
    return fail(errc::mismatch, "rows " + std::to_string(needed_before(positions)) + ".." +
                                    std::to_string(positions) +
                                    " would be seen again, those before " +
                                    std::to_string(kept_from) + " are gone");
  written_ = positions;
  return {};
}

}  // namespace cedar::stage
