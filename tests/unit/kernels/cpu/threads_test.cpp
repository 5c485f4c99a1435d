// Goal: divided work is done once, and units that share a backend do not disturb each other.
// Method: ranges are counted; two threads call one backend of three threads again and again, with
// everything divided, and must get the bits that each gets alone. Runs under the thread sanitizer.
#include <sys/resource.h>
#include <tbb/global_control.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "kernels/base/check.hpp"
#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/cpu/internal/slot_arena.hpp"
#include "kernels/cpu/internal/thread_places.hpp"
#include "kernels/cpu/internal/workers.hpp"
#include "tests/unit/kernels/cpu/random_tensors.hpp"

using namespace cedar::kernels;

namespace {

/// Without it, a backend would have no more threads than the machine has processors.
struct enough_threads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 8};
};

/// A product of one row, one of many, and the attention of some rows: of one unit.
class unit {
 public:
  unit(std::uint32_t seed, std::size_t rows) : unit(random_tensors(seed), rows) {}

  struct results {
    tensor<bf16> one, many, attended;
    bool operator==(const results&) const = default;
  };

  results compute(const backend& cpu) const {
    results out{{1, outputs}, {rows_, outputs}, {rows_, heads * head_dim}};
    linear_bf16_arguments product;
    product.weight = weight_.view();
    product.y = out.one.view();
    product.x = {x_.view().data, 1, inputs, x_.view().stride};
    cpu.linear_bf16(product);
    product.y = out.many.view();
    product.x = x_.view();
    cpu.linear_bf16(product);
    std::vector<const std::byte*> window;
    for (std::size_t i = 0; i < entries; ++i)
      window.push_back(reinterpret_cast<const std::byte*>(kv_.view().row_data(i)));
    const std::vector<attention_entries> lists(rows_, attention_entries{window, {}});
    cpu.attention({out.attended.view(), q_.view(), lists, sinks_, head_dim, 0.1F,
                   entry_format::bf16, entry_format::bf16});
    return out;
  }

 private:
  static constexpr std::size_t inputs = 96;
  static constexpr std::size_t outputs = 83;
  static constexpr std::size_t heads = 5;
  static constexpr std::size_t head_dim = 96;
  static constexpr std::size_t entries = 41;

  unit(random_tensors source, std::size_t rows)
      : rows_(rows),
        x_(source.bf16_matrix(rows, inputs, 1)),
        weight_(source.bf16_matrix(outputs, inputs, 1)),
        q_(source.bf16_matrix(rows, heads * head_dim, 1)),
        kv_(source.bf16_matrix(entries, head_dim, 1)),
        sinks_(source.f32_vector(heads, 1)) {}

  std::size_t rows_;
  tensor<bf16> x_, weight_, q_, kv_;
  std::vector<float> sinks_;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cpu_threads, enough_threads)

BOOST_AUTO_TEST_CASE(an_arena_of_one_slot_is_none) {
  BOOST_TEST((cpu::slot_arena::make(1) == nullptr));
  BOOST_TEST(cpu::slot_arena::make(3)->slots() == 3U);
  BOOST_TEST(cpu::slot_arena::make(100)->slots() == 8U);
}

BOOST_AUTO_TEST_CASE(ranges_cover_everything_once) {
  const auto arena = cpu::slot_arena::make(3);
  for (const std::size_t count : {0U, 1U, 7U, 8U, 9U, 100U, 1001U})
    for (const std::size_t unit : {1U, 8U})
      for (const std::size_t grain : {1U, 50U, 100000U}) {
        std::vector<std::atomic<int>> seen(count);
        cpu::workers(arena.get(), grain)
            .split(count, unit, 3, [&](std::size_t begin, std::size_t end) {
              if (begin % unit != 0 || begin >= end || end > count) throw cedar::defect("range");
              if (end - begin < count && 3 * (end - begin + unit) < grain)
                throw cedar::defect("a piece below the grain");
              for (std::size_t i = begin; i < end; ++i) ++seen[i];
            });
        for (const auto& times : seen) BOOST_REQUIRE(times == 1);
      }
}

BOOST_AUTO_TEST_CASE(what_is_below_the_grain_stays_on_the_callers_thread) {
  const auto arena = cpu::slot_arena::make(3);
  std::vector<std::thread::id> seen;
  cpu::workers(arena.get(), 100).split(199, 1, 1, [&](std::size_t, std::size_t) {
    seen.push_back(std::this_thread::get_id());
  });
  BOOST_TEST((seen == std::vector{std::this_thread::get_id()}));
}

// Not under the thread sanitizer: oneTBB and libstdc++ hand the exception over, and neither is
// built with it, so it takes the free of the exception's text for a race.
#ifndef __SANITIZE_THREAD__
BOOST_AUTO_TEST_CASE(a_defect_of_a_piece_reaches_the_caller) {
  const auto arena = cpu::slot_arena::make(3);
  const cpu::workers threads(arena.get(), 1);
  BOOST_CHECK_THROW(threads.split(100, 1, 1,
                                  [](std::size_t begin, std::size_t) {
                                    if (begin >= 50) throw cedar::defect("planted");
                                  }),
                    cedar::defect);
  std::atomic<std::size_t> done = 0;
  threads.split(100, 1, 1, [&](std::size_t begin, std::size_t end) { done += end - begin; });
  BOOST_TEST(done == 100U);
}
#endif

BOOST_AUTO_TEST_CASE(units_that_share_a_backend_compute_as_if_alone) {
  constexpr int rounds = 40;
  const std::vector<unit> units{{1, 2}, {2, 11}, {3, 5}};
  std::vector<unit::results> alone;
  for (const unit& each : units) alone.push_back(each.compute(*make_cpu_backend()));
  // Fewer slots than units: one of them has to wait, or has its work done by others.
  for (const std::uint32_t threads : {2U, 3U}) {
    const auto shared = make_cpu_backend(threads, 1);
    std::vector<int> same(units.size());
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < units.size(); ++i)
      running.emplace_back([&, i] {
        for (int round = 0; round < rounds; ++round)
          same[i] += units[i].compute(*shared) == alone[i] ? 1 : 0;
      });
    for (std::thread& each : running) each.join();
    BOOST_TEST(same == std::vector<int>(units.size(), rounds), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(threads_run_where_they_are_placed) {
  const auto usable = usable_processors();
  BOOST_REQUIRE(!usable.empty());
  thread_placement placement;
  placement.processors = {usable.back()};
  placement.nice = 3;
  const cpu::thread_places places(placement);
  const auto arena = cpu::slot_arena::make(4, &places);
  struct seen_by_threads {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::vector<std::vector<std::uint32_t>> processors;
    std::vector<int> nice;

    bool are_two() {
      const std::scoped_lock lock(mutex);
      return threads.size() > 1;
    }
    void note() {
      const std::scoped_lock lock(mutex);
      threads.insert(std::this_thread::get_id());
      processors.push_back(usable_processors());
      nice.push_back(getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())));
    }
  } seen;
  std::thread caller([&] {
    // The caller alone would take every run: each waits for another thread to come, long on a busy
    // machine.
    for (int round = 0; round < 10 && !seen.are_two(); ++round)
      arena->on_slots(
          4,
          [](void* context) {
            auto& all = *static_cast<seen_by_threads*>(context);
            all.note();
            for (int waits = 0; waits < 100 && !all.are_two(); ++waits)
              std::this_thread::sleep_for(std::chrono::milliseconds(10));
          },
          &seen);
  });
  caller.join();
  BOOST_TEST(seen.threads.size() > 1U);
  for (const auto& processors : seen.processors)
    BOOST_TEST(processors == placement.processors, boost::test_tools::per_element());
  for (const int nice : seen.nice) BOOST_TEST(nice >= 3);
}

BOOST_AUTO_TEST_CASE(a_backend_of_one_thread_places_its_caller) {
  const auto usable = usable_processors();
  thread_placement placement;
  placement.processors = {usable.front()};
  const auto cpu = make_cpu_backend(1, cpu_grain, placement);
  std::vector<std::uint32_t> during;
  std::thread caller([&] {
    unit(1, 1).compute(*cpu);
    during = usable_processors();
  });
  caller.join();
  BOOST_TEST(during == placement.processors, boost::test_tools::per_element());
  BOOST_TEST(usable_processors() == usable, boost::test_tools::per_element());
  placement.processors = {1023};
  BOOST_CHECK_THROW(make_cpu_backend(1, cpu_grain, placement), cedar::defect);
}

BOOST_AUTO_TEST_SUITE_END()
