#include "kernels/cpu/internal/scratch.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/base/buffer.hpp"

namespace cedar::kernels::cpu {

namespace {

constexpr std::size_t least_block_bytes = std::size_t{1} << 20;

struct stack_of_blocks {
  std::vector<buffer> blocks;
  std::size_t block = 0;  // index of the block in use
  std::size_t used = 0;  // bytes of it that are taken
};

stack_of_blocks& this_thread() {
  thread_local stack_of_blocks stack;
  return stack;
}

}  // namespace

scratch::scratch() : block_(this_thread().block), used_(this_thread().used) {}

scratch::~scratch() {
  this_thread().block = block_;
  this_thread().used = used_;
}

void* scratch::take_bytes(std::size_t bytes) {
  stack_of_blocks& stack = this_thread();
  const std::size_t rounded = (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  while (stack.block < stack.blocks.size() &&
         stack.blocks[stack.block].bytes() - stack.used < rounded) {
    ++stack.block;
    stack.used = 0;
  }
  if (stack.block == stack.blocks.size())
    stack.blocks.emplace_back(std::max(rounded, least_block_bytes));
  return stack.blocks[stack.block].data() + std::exchange(stack.used, stack.used + rounded);
}

}  // namespace cedar::kernels::cpu
