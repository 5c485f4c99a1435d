#include "kernels/cpu/internal/slot_arena.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include <algorithm>

#include "kernels/cpu/internal/thread_places.hpp"

namespace cedar::kernels::cpu {

namespace {

/// oneTBB lends its threads to whichever arena has work: each is placed when it comes in.
class entry_observer final : public tbb::task_scheduler_observer {
 public:
  entry_observer(tbb::task_arena& arena, const thread_places* places)
      : tbb::task_scheduler_observer(arena), places_(places) {
    if (places_ != nullptr) observe(true);
  }
  ~entry_observer() override { observe(false); }
  entry_observer(const entry_observer&) = delete;
  entry_observer& operator=(const entry_observer&) = delete;

  void on_scheduler_entry(bool) override { places_->take_this_thread(); }

 private:
  const thread_places* places_;
};

}  // namespace

struct slot_arena::arena {
  arena(std::uint32_t slots, const thread_places* places)
      : tasks(static_cast<int>(slots)), observer(tasks, places) {}
  tbb::task_arena tasks;
  entry_observer observer;
};

std::unique_ptr<slot_arena> slot_arena::make(std::uint32_t slots, const thread_places* places) {
  if (slots == 1) return nullptr;
  const std::size_t most =
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  const auto useful = static_cast<std::uint32_t>(std::min<std::size_t>(slots, most));
  if (useful == 1) return nullptr;
  return std::unique_ptr<slot_arena>(new slot_arena(useful, places));
}

slot_arena::slot_arena(std::uint32_t slots, const thread_places* places)
    : slots_(slots), arena_(std::make_unique<arena>(slots, places)) {}

slot_arena::~slot_arena() = default;

void slot_arena::on_slots(std::size_t calls, void (*run)(void*), void* context) const {
  arena_->tasks.execute([&] {
    tbb::parallel_for(
        std::size_t{0}, calls, [run, context](std::size_t) { run(context); },
        tbb::simple_partitioner{});
  });
}

}  // namespace cedar::kernels::cpu
