#include "kernels/cpu/internal/slot_arena.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace cedar::kernels::cpu {

struct slot_arena::arena {
  explicit arena(std::uint32_t slots) : tasks(static_cast<int>(slots)) {}
  tbb::task_arena tasks;
};

std::unique_ptr<slot_arena> slot_arena::make(std::uint32_t slots) {
  if (slots == 1) return nullptr;
  const std::size_t most =
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  const auto useful = static_cast<std::uint32_t>(std::min<std::size_t>(slots, most));
  if (useful == 1) return nullptr;
  return std::unique_ptr<slot_arena>(new slot_arena(useful));
}

slot_arena::slot_arena(std::uint32_t slots)
    : slots_(slots), arena_(std::make_unique<arena>(slots)) {}

slot_arena::~slot_arena() = default;

void slot_arena::on_slots(std::size_t calls, void (*run)(void*), void* context) const {
  arena_->tasks.execute([&] {
    tbb::parallel_for(
        std::size_t{0}, calls, [run, context](std::size_t) { run(context); },
        tbb::simple_partitioner{});
  });
}

}  // namespace cedar::kernels::cpu
