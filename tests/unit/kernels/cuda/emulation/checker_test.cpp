// Goal: the emulation finds what a device would hide. Method: small kernels with one planted
// mistake each, and the same kernels without it; the fault must name kernel, block, thread, array
// and index.
#include <boost/test/unit_test.hpp>

#include "kernels/cuda/device/platform.cuh"
#include "kernels/cuda/device/views.cuh"
#include "kernels/cuda/emulation/fault.hpp"

namespace {

using namespace cedar::kernels::cuda;

constexpr unsigned threads = 64;

/// The text of the fault that the kernel ends with; empty if there is none.
template <class... Arguments>
std::string fault_of(void (*kernel)(Arguments...), Arguments... arguments) {
  try {
    launch({"planted", {1, 2, 1}, threads, shared_bytes_of<int>(threads)}, {}, kernel,
           arguments...);
  } catch (const emulation::fault& found) {
    return found.what();
  }
  return {};
}

void check_text(const std::string& text, const std::string& expected) {
  BOOST_TEST(text.find(expected) != std::string::npos,
             "'" << text << "' has no '" << expected << "'");
}

// ---- barriers of the block ------------------------------------------------------------------

template <bool Barrier>
CEDAR_KERNEL(threads)
void reverse(int* out) {
  dynamic_shared shared;
  const auto cells = shared.take<int>(threads, "cells");
  const unsigned thread = thread_index();
  cells.store(thread, static_cast<int>(thread));
  if constexpr (Barrier) sync_block();
  out[thread] = cells.load(threads - 1 - thread);
}

template <bool Barrier>
CEDAR_KERNEL(threads)
void reuse(int* out) {
  dynamic_shared shared;
  const auto cells = shared.take<int>(threads, "cells");
  const unsigned thread = thread_index();
  cells.store(thread, 1);
  sync_block();
  out[thread] = cells.load((thread + 1) % threads);
  if constexpr (Barrier) sync_block();
  cells.store(thread, 2);
}

CEDAR_KERNEL(threads) void everybody_writes() {
  dynamic_shared shared;
  const auto cells = shared.take<int>(threads, "cells");
  cells.store(3, 7);
}

// ---- barriers of the warp -------------------------------------------------------------------

template <bool Barrier, unsigned Distance>
CEDAR_KERNEL(threads)
void neighbour(int* out) {
  dynamic_shared shared;
  const auto cells = shared.take<int>(threads, "cells");
  const unsigned thread = thread_index();
  cells.store(thread, static_cast<int>(thread));
  if constexpr (Barrier) sync_warp();
  out[thread] = cells.load(thread ^ Distance);
}

CEDAR_KERNEL(threads) void shuffle_is_no_barrier(int* out) {
  dynamic_shared shared;
  const auto cells = shared.take<int>(threads, "cells");
  const unsigned thread = thread_index();
  cells.store(thread, static_cast<int>(thread));
  out[thread] = shuffle(1, 0) + cells.load(thread ^ 1U);
}

// ---- bounds, values -------------------------------------------------------------------------

CEDAR_KERNEL(threads) void index_of(unsigned offset) {
  dynamic_shared shared;
  const auto cells = shared.take<int>(threads, "cells");
  cells.store(thread_index() + offset, 1);
}

CEDAR_KERNEL(threads) void part_of(unsigned count) {
  dynamic_shared shared;
  const auto cells = shared.take<int>(threads, "cells").part(8, count);
  if (thread_index() < 8) cells.store(thread_index(), 1);
}

CEDAR_KERNEL(threads) void wide_access(unsigned at) {
  dynamic_shared shared;
  const auto cells = shared.take<int>(threads, "cells");
  if (thread_index() == 0) cells.store_as<double>(at, 1.0);
}

template <unsigned Written>
CEDAR_KERNEL(threads)
void partly_written(int* out) {
  dynamic_shared shared;
  const auto cells = shared.take<int>(threads, "cells");
  const unsigned thread = thread_index();
  if (thread < Written) cells.store(thread, 1);
  sync_block();
  out[thread] = cells.load(thread);
}

CEDAR_KERNEL(threads) void takes(unsigned count) {
  dynamic_shared shared;
  shared.take<int>(count, "cells");
}

CEDAR_KERNEL(threads) void takes_differently(int) {
  dynamic_shared shared;
  shared.take<int>(thread_index() < 40 ? 8 : 4, "cells");
}

CEDAR_KERNEL(threads)
void touches(global_rows<int> rows, unsigned row, unsigned col, unsigned count) {
  *rows.at(row, col, count) = 1;
}

// ---- divergence -----------------------------------------------------------------------------

CEDAR_KERNEL(threads) void half_at_the_barrier(unsigned count) {
  if (thread_index() < count) sync_block();
}

CEDAR_KERNEL(threads) void barrier_in_two_places(unsigned count) {
  if (thread_index() < count)
    sync_block();
  else
    sync_block();
}

CEDAR_KERNEL(threads) void shuffle_of_some(unsigned count, int* out) {
  if (thread_index() < count) out[thread_index()] = shuffle_xor(1, 1);
}

// ---- asynchronous copies --------------------------------------------------------------------

template <bool Wait, bool Barrier, unsigned Distance>
CEDAR_KERNEL(threads)
void copied(const int* from, int* out) {
  dynamic_shared shared;
  const auto cells = shared.take<int>(threads, "cells");
  const unsigned thread = thread_index();
  copy_async<4>(cells, thread, from + thread);
  commit_copies();
  wait_copies<Wait ? 0 : 1>();
  if constexpr (Barrier) sync_block();
  out[thread] = cells.load((thread + Distance) % threads);
}

template <bool Wait>
CEDAR_KERNEL(threads)
void leaves_early(const int* from) {
  dynamic_shared shared;
  const auto cells = shared.take<int>(threads, "cells");
  copy_async<4>(cells, thread_index(), from + thread_index());
  if constexpr (Wait) {
    commit_copies();
    wait_copies<0>();
  }
}

/// The buffer is filled again while others may still read it: the mistake of a ring that is one
/// short.
template <bool Barrier>
CEDAR_KERNEL(threads)
void refilled(const int* from, int* out) {
  dynamic_shared shared;
  const auto cells = shared.take<int>(threads, "cells");
  const unsigned thread = thread_index();
  for (unsigned round = 0; round < 2; ++round) {
    copy_async<4>(cells, thread, from + thread);
    commit_copies();
    wait_copies<0>();
    sync_block();
    out[thread] = cells.load((thread + 1) % threads);
    if constexpr (Barrier) sync_block();
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_emulation_checker)

BOOST_AUTO_TEST_CASE(a_missing_block_barrier_is_found) {
  int out[threads];
  check_text(fault_of(reverse<false>, +out),
             "kernel planted, block 0,0,0, thread 0: reads shared cells[63], which nothing");
  BOOST_TEST(fault_of(reverse<true>, +out).empty());
  BOOST_TEST(out[1] == 62);
  check_text(fault_of(reuse<false>, +out),
             "thread 1: writes shared cells[1], which thread 0 read, without a barrier");
  BOOST_TEST(fault_of(reuse<true>, +out).empty());
  check_text(fault_of(everybody_writes),
             "thread 1: writes shared cells[3], which thread 0 wrote, without a barrier");
}

BOOST_AUTO_TEST_CASE(a_missing_warp_barrier_is_found) {
  int out[threads];
  check_text(fault_of(neighbour<false, 1>, +out), "thread 0: reads shared cells[1], which nothing");
  BOOST_TEST(fault_of(neighbour<true, 1>, +out).empty());
  check_text(fault_of(neighbour<true, 32>, +out),
             "thread 0: reads shared cells[32], which nothing has written");
  check_text(fault_of(shuffle_is_no_barrier, +out),
             "thread 0: reads shared cells[1], which thread 1 wrote, without a barrier");
}

BOOST_AUTO_TEST_CASE(an_index_out_of_bounds_is_found) {
  check_text(fault_of(index_of, 1U),
             "thread 63: touches shared cells[64], beyond its elements [0, 64)");
  BOOST_TEST(fault_of(index_of, 0U).empty());
  check_text(fault_of(part_of, 7U), "touches shared cells[15], beyond its elements [8, 15)");
  check_text(fault_of(part_of, 57U), "touches shared cells[65], beyond its elements [0, 64)");
  BOOST_TEST(fault_of(part_of, 8U).empty());
  check_text(fault_of(wide_access, 63U), "touches shared cells[63], beyond");
  check_text(fault_of(wide_access, 1U), "cells[1], which is not aligned to 8 bytes");
  BOOST_TEST(fault_of(wide_access, 62U).empty());
}

BOOST_AUTO_TEST_CASE(an_index_beyond_a_view_of_global_memory_is_found) {
  int memory[3 * 8];
  const auto rows = rows_of(cedar::kernels::matrix_view<int>(memory, 3, 5, 8));
  check_text(fault_of(touches, rows, 3U, 0U, 1U), "thread 0: touches row 3 of 3");
  check_text(fault_of(touches, rows, 2U, 5U, 1U), "touches column 5 of 5");
  check_text(fault_of(touches, rows, 2U, 3U, 3U), "touches column 5 of 5");
  BOOST_TEST(fault_of(touches, rows, 2U, 3U, 2U).empty());
}

BOOST_AUTO_TEST_CASE(an_uninitialised_read_is_found) {
  int out[threads];
  check_text(fault_of(partly_written<63>, +out),
             "thread 63: reads shared cells[63], which nothing has written");
  // The block before this one wrote it all: that does not count.
  BOOST_TEST(fault_of(partly_written<64>, +out).empty());
  check_text(fault_of(partly_written<10>, +out), "thread 10: reads shared cells[10]");
}

BOOST_AUTO_TEST_CASE(arrays_are_those_of_the_launch) {
  check_text(fault_of(takes, 65U), "takes shared array cells beyond the launch's 256 bytes");
  BOOST_TEST(fault_of(takes, 64U).empty());
  check_text(fault_of(takes_differently, 0), "thread 40: takes shared array cells where another");
}

BOOST_AUTO_TEST_CASE(divergence_is_found) {
  int out[threads];
  check_text(fault_of(half_at_the_barrier, 40U), "thread 0: divergence: it waits at sync_block");
  check_text(fault_of(half_at_the_barrier, 40U), "but thread 40 has left the kernel");
  BOOST_TEST(fault_of(half_at_the_barrier, threads).empty());
  check_text(fault_of(barrier_in_two_places, 5U), "but thread 5 waits at sync_block (checker_test");
  BOOST_TEST(fault_of(barrier_in_two_places, threads).empty());
  check_text(fault_of(shuffle_of_some, 31U, +out), "thread 0: divergence: it waits at shuffle_xor");
  check_text(fault_of(shuffle_of_some, 31U, +out), "but thread 31 has left the kernel");
  BOOST_TEST(fault_of(shuffle_of_some, 32U, +out).empty());  // whole warps may stay away
}

BOOST_AUTO_TEST_CASE(a_copy_that_nobody_waited_for_is_found) {
  int from[threads] = {}, out[threads];
  const int* source = from;
  check_text(fault_of(copied<false, true, 0>, source, +out),
             "thread 0: reads shared cells[0], to which a copy of thread 0 is on its way");
  check_text(fault_of(copied<true, false, 1>, source, +out), "thread 0: reads shared cells[1]");
  BOOST_TEST(fault_of(copied<true, false, 0>, source, +out).empty());  // its own needs no barrier
  BOOST_TEST(fault_of(copied<true, true, 1>, source, +out).empty());
  check_text(fault_of(leaves_early<false>, source), "leaves the kernel before it has waited");
  BOOST_TEST(fault_of(leaves_early<true>, source).empty());
  check_text(fault_of(refilled<false>, source, +out),
             "thread 1: writes shared cells[1], which thread 0 read, without a barrier");
  BOOST_TEST(fault_of(refilled<true>, source, +out).empty());
}

BOOST_AUTO_TEST_CASE(device_code_outside_of_a_launch_is_found) {
  BOOST_CHECK_THROW(thread_index(), emulation::fault);
  BOOST_CHECK_THROW(launch({"odd", {}, 33, 0}, {}, everybody_writes), cedar::defect);
  BOOST_CHECK_THROW(launch({"large", {}, 1056, 0}, {}, everybody_writes), cedar::defect);
  BOOST_CHECK_THROW(launch({"greedy", {}, 32, 1 << 20}, {}, everybody_writes), cedar::defect);
  launch({"empty", {1, 0, 1}, 32, 0}, {}, everybody_writes);
}

BOOST_AUTO_TEST_SUITE_END()
