#include "kernels/cpu/internal/workers.hpp"

#include <algorithm>
#include <atomic>

#include "kernels/cpu/internal/slot_arena.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace cedar::kernels::cpu {

namespace {

/// A thread that other processes hold up does not hold up the rest.
constexpr std::size_t pieces_per_thread = 4;

/// What on_slots promises, told to the thread sanitizer, which cannot see into oneTBB: what came
/// before `published` in one thread is visible after `received` in another.
void published([[maybe_unused]] char& mark) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(&mark);
#endif
}
void received([[maybe_unused]] char& mark) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(&mark);
#endif
}

}  // namespace

/// Threads take the next piece until none is left. Nothing orders pieces among each other: the
/// counter is relaxed, and the marks join threads with the caller only.
struct workers::shared_division {
  const division& all;
  std::atomic<std::size_t> next{0};
  char begun = 0;
  char ended = 0;
};

workers::workers(const slot_arena* arena, std::size_t grain)
    : arena_(arena), threads_(arena == nullptr ? 1 : arena->slots()), grain_(grain) {}

std::size_t workers::threads() const noexcept {
  return threads_;
}

std::size_t workers::pieces_of(std::size_t count, std::size_t unit, std::size_t cost) const {
  const std::size_t units = (count + unit - 1) / unit;
  const std::size_t worthwhile = count * cost / grain_;
  return std::max<std::size_t>(1, std::min({units, worthwhile, threads_ * pieces_per_thread}));
}

void workers::take_pieces(void* shared) {
  auto& division = *static_cast<shared_division*>(shared);
  received(division.begun);
  const auto& [count, unit, pieces, work, context] = division.all;
  const std::size_t units = (count + unit - 1) / unit;
  for (;;) {
    const std::size_t piece = division.next.fetch_add(1, std::memory_order_relaxed);
    if (piece >= pieces) break;
    const std::size_t begin = piece * units / pieces * unit;
    const std::size_t end = std::min(count, (piece + 1) * units / pieces * unit);
    work(context, begin, end);
  }
  published(division.ended);
}

void workers::run(const division& all) const {
  shared_division shared{all};
  published(shared.begun);
  arena_->on_slots(std::min(threads_, all.pieces), take_pieces, &shared);
  received(shared.ended);
}

}  // namespace cedar::kernels::cpu
