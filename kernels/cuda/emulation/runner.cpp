#include "kernels/cuda/emulation/internal/runner.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/cuda/emulation/fault.hpp"

namespace cedar::kernels::cuda::emulation {

namespace {

using stage = thread_state::stage;

/// A stack that belongs to the pool.
class borrowed_stack {
 public:
  explicit borrowed_stack(boost::context::stack_context stack) : stack_(stack) {}
  boost::context::stack_context allocate() { return stack_; }
  void deallocate(boost::context::stack_context&) {}

 private:
  boost::context::stack_context stack_;
};

std::string place(const std::source_location& where) {
  const std::string file = where.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line());
}

bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && std::string_view(a.file_name()) == b.file_name();
}

std::string whereabouts(const thread_state& thread) {
  if (thread.at == stage::done) return "has left the kernel";
  return std::string("waits at ") + thread.meeting + " (" + place(thread.where) + ")";
}

}  // namespace

stack_pool::~stack_pool() {
  for (boost::context::stack_context& stack : stacks_) allocator_.deallocate(stack);
}

boost::context::stack_context stack_pool::stack(std::size_t index) {
  while (stacks_.size() <= index) stacks_.push_back(allocator_.allocate());
  return stacks_[index];
}

shared_shadow::actor block_runner::actor(unsigned thread) const {
  return {thread, warp_barriers_[thread / warp_threads]};
}

std::string block_runner::describe(unsigned thread, const std::string& what) const {
  const auto at = [](unsigned x, unsigned y, unsigned z) {
    return std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z);
  };
  return std::string("kernel ") + shape_->kernel + ", block " + at(block_.x, block_.y, block_.z) +
         ", thread " + std::to_string(thread) + ": " + what;
}

void block_runner::run(const launch_shape& shape, grid_extent block,
                       const std::function<void()>& body) {
  shape_ = &shape;
  block_ = block;
  done_ = 0;
  failure_ = nullptr;
  arrays_.clear();
  if (shared_.size() < shape.shared_bytes) shared_.resize(shape.shared_bytes);
  shadow_.begin_block(shape.shared_bytes);
  warp_barriers_.assign(shape.threads / warp_threads, 0);
  try {
    start_threads(body);
    run_threads();
  } catch (...) {
    threads_.clear();  // unwinds them, on their stacks
    shadow_ = {};  // copies may be in flight
    throw;
  }
}

void block_runner::start_threads(const std::function<void()>& body) {
  threads_.clear();
  threads_.resize(shape_->threads);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    threads_[i].fiber = boost::context::fiber(
        std::allocator_arg, borrowed_stack(stacks_.stack(i)),
        [this, &body, i](boost::context::fiber&& back) {
          scheduler_ = std::move(back);
          try {
            body();
            finish_thread(i);
          } catch (const std::exception&) {  // and nothing else: unwinding is an exception too
            failure_ = std::current_exception();
          }
          threads_[i].at = stage::done;
          return std::move(scheduler_);
        });
  }
}

void block_runner::finish_thread(std::size_t thread) {
  const thread_state& state = threads_[thread];
  const auto empty = [](const std::vector<copy>& group) { return group.empty(); };
  if (state.open_copies.empty() && std::ranges::all_of(state.copy_groups, empty)) return;
  fail("leaves the kernel before it has waited for its copies");
}

void block_runner::run_threads() {
  while (done_ < threads_.size()) {
    bool progress = false;
    for (std::size_t warp = 0; warp < warp_barriers_.size(); ++warp)
      progress = run_warp(warp) || progress;
    if (progress) continue;
    if (!block_met()) report_divergence();
    shadow_.pass_block_barrier();
    for (thread_state& state : threads_) state.at = stage::ready;
  }
}

/// Runs the lanes of a warp as far as they go without other warps.
bool block_runner::run_warp(std::size_t warp) {
  const std::size_t first = warp * warp_threads;
  bool progress = false;
  for (;;) {
    bool any = false;
    for (std::size_t i = first; i < first + warp_threads; ++i) {
      if (threads_[i].at != stage::ready) continue;
      resume(i);
      any = true;
    }
    if (!any) return progress;
    progress = true;
    if (lanes_met(first)) carry_out(first);
  }
}

void block_runner::resume(std::size_t thread) {
  current_ = thread;
  threads_[thread].fiber = std::move(threads_[thread].fiber).resume();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  if (threads_[thread].at == stage::done) ++done_;
}

void block_runner::suspend(stage at) {
  threads_[current_].at = at;
  scheduler_ = std::move(scheduler_).resume();
}

bool block_runner::lanes_met(std::size_t first) const {
  const thread_state& one = threads_[first];
  for (std::size_t i = first; i < first + warp_threads; ++i) {
    const thread_state& other = threads_[i];
    if (other.at != stage::at_warp_operation || other.operation != one.operation ||
        !same_place(other.where, one.where)) {
      return false;
    }
  }
  return true;
}

void block_runner::carry_out(std::size_t first) {
  void* operands[warp_threads];
  for (std::size_t i = 0; i < warp_threads; ++i) operands[i] = threads_[first + i].operands;
  current_ = first;
  if (threads_[first].operation == nullptr)
    ++warp_barriers_[first / warp_threads];
  else
    threads_[first].operation(lane_operands(operands));
  for (std::size_t i = first; i < first + warp_threads; ++i) threads_[i].at = stage::ready;
}

bool block_runner::block_met() const {
  for (const thread_state& state : threads_) {
    if (state.at != stage::at_block_barrier || !same_place(state.where, threads_[0].where))
      return false;
  }
  return true;
}

/// Nobody can go on: names a thread that waits, and one that it waits for in vain.
void block_runner::report_divergence() const {
  std::size_t waiting = 0;
  while (threads_[waiting].at == stage::done) ++waiting;
  for (std::size_t i = 0; i < threads_.size();
       ++i)  // those of a warp say more than those of a block
    if (threads_[i].at == stage::at_warp_operation) {
      waiting = i;
      break;
    }
  const thread_state& one = threads_[waiting];
  const bool of_warp = one.at == stage::at_warp_operation;
  const std::size_t first = of_warp ? waiting / warp_threads * warp_threads : 0;
  const std::size_t count = of_warp ? warp_threads : threads_.size();
  for (std::size_t i = first; i < first + count; ++i) {
    const thread_state& other = threads_[i];
    if (other.at == one.at && other.operation == one.operation &&
        same_place(other.where, one.where)) {
      continue;
    }
    throw fault(describe(static_cast<unsigned>(waiting), "divergence: it " + whereabouts(one) +
                                                             ", but thread " + std::to_string(i) +
                                                             " " + whereabouts(other)));
  }
  CEDAR_ASSERT(false, "a block stands still although its threads have met");
  std::terminate();
}

}  // namespace cedar::kernels::cuda::emulation
