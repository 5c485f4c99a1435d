#include "kernels/base/arena.hpp"

#include <algorithm>

namespace cedar::kernels {

namespace {
/// Smallest block asked from the system: large enough that a tiny model needs one.
constexpr std::size_t first_block_bytes = std::size_t{1} << 20;
}  // namespace

std::byte* arena::take_bytes(std::size_t bytes) {
  const std::size_t rounded = (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  while (block_ < blocks_.size() && used_ + rounded > blocks_[block_].bytes()) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    const std::size_t last = blocks_.empty() ? first_block_bytes / 2 : blocks_.back().bytes();
    blocks_.emplace_back(std::max(rounded, last * 2));
    used_ = 0;
  }
  std::byte* memory = blocks_[block_].data() + used_;
  used_ += rounded;
  return memory;
}

void arena::reset() {
  if (blocks_.size() > 1) {
    const std::size_t total = capacity_bytes();
    blocks_.clear();
    blocks_.emplace_back(total);
  }
  block_ = 0;
  used_ = 0;
}

std::size_t arena::capacity_bytes() const noexcept {
  std::size_t total = 0;
  for (const buffer& block : blocks_) total += block.bytes();
  return total;
}

}  // namespace cedar::kernels
