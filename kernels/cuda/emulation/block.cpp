#include "kernels/cuda/emulation/block.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/base/check.hpp"
#include "kernels/cuda/emulation/fault.hpp"
#include "kernels/cuda/emulation/internal/runner.hpp"

namespace cedar::kernels::cuda::emulation {

namespace {

constexpr unsigned block_threads_max = 1024;
constexpr std::size_t block_shared_bytes_max = 227 << 10;  // sm_90 and sm_100

thread_local block_runner* running = nullptr;
thread_local std::uint64_t grids = 0;

std::string text_of(const access_verdict& verdict, const shared_place& array, bool write) {
  const std::size_t index = (verdict.byte - array.offset) / array.element_bytes;
  const std::string what = std::string(write ? "writes " : "reads ") + "shared " + array.name +
                           "[" + std::to_string(index) + "]";
  const std::string other = "thread " + std::to_string(verdict.other);
  switch (verdict.problem) {
    case access_problem::none:
      break;
    case access_problem::uninitialised:
      return what + ", which nothing has written";
    case access_problem::read_after_write:
    case access_problem::write_after_write:
      return what + ", which " + other + " wrote, without a barrier in between";
    case access_problem::write_after_read:
      return what + ", which " + other + " read, without a barrier in between";
    case access_problem::copy_in_flight:
      return what + ", to which a copy of " + other + " is on its way";
  }
  return what;
}

void judge(const access_verdict& verdict, const shared_place& array, bool write, unsigned thread) {
  if (verdict.problem == access_problem::none) return;
  throw fault(runner().describe(thread, text_of(verdict, array, write)));
}

}  // namespace

std::uint64_t grids_run() noexcept {
  return grids;
}

block_runner& runner() {
  if (running == nullptr) throw fault("device code runs outside of a launch");
  return *running;
}

void run_grid(const launch_shape& shape, const std::function<void()>& body) {
  CEDAR_REQUIRE(
      shape.threads > 0 && shape.threads <= block_threads_max && shape.threads % warp_threads == 0,
      std::string(shape.kernel) + ": a block has whole warps, at most 1024 threads");
  CEDAR_REQUIRE(shape.shared_bytes <= block_shared_bytes_max,
                std::string(shape.kernel) + ": more shared memory than a block may have");
  CEDAR_REQUIRE(running == nullptr, "a kernel launches a kernel");
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  ++grids;
  static thread_local std::unique_ptr<block_runner> own;
  if (own == nullptr) own = std::make_unique<block_runner>();
  struct ends_running {
    ~ends_running() { running = nullptr; }
  } ends;
  running = own.get();
  for (unsigned z = 0; z < shape.grid.z; ++z)
    for (unsigned y = 0; y < shape.grid.y; ++y)
      for (unsigned x = 0; x < shape.grid.x; ++x) own->run(shape, {x, y, z}, body);
}

unsigned current_thread() {
  return runner().thread_number();
}

grid_extent current_block() {
  return runner().block();
}

const launch_shape& current_launch() {
  return runner().shape();
}

void fail(const std::string& what) {
  throw fault(runner().describe(runner().thread_number(), what));
}

void meet_block(std::source_location where) {
  thread_state& thread = runner().thread();
  thread.meeting = "sync_block";
  thread.operation = nullptr;
  thread.where = where;
  runner().suspend(thread_state::stage::at_block_barrier);
}

void meet_warp(std::source_location where) {
  meet_lanes("sync_warp", nullptr, nullptr, where);
}

void meet_lanes(const char* name, void* operands, void (*operation)(lane_operands),
                std::source_location where) {
  thread_state& thread = runner().thread();
  thread.meeting = name;
  thread.operands = operands;
  thread.operation = operation;
  thread.where = where;
  runner().suspend(thread_state::stage::at_warp_operation);
}

shared_place take_shared(const char* name, std::size_t count, std::size_t element_bytes) {
  block_runner& block = runner();
  const std::size_t index = block.thread().shared_taken++;
  std::vector<shared_place>& arrays = block.arrays();
  if (index == arrays.size()) {
    std::size_t offset = 0;
    if (index > 0) {
      const shared_place& last = arrays.back();
      offset = last.offset + shared_bytes_of<std::byte>(last.count * last.element_bytes);
    }
    if (offset + count * element_bytes > block.shape().shared_bytes)
      fail(std::string("takes shared array ") + name + " beyond the launch's " +
           std::to_string(block.shape().shared_bytes) + " bytes");
    arrays.push_back({name, offset, count, element_bytes});
  }
  if (std::strcmp(arrays[index].name, name) != 0 || arrays[index].count != count)
    fail(std::string("takes shared array ") + name + " where another thread took " +
         arrays[index].name);
  return arrays[index];
}

void read_shared(const shared_place& array, std::size_t first, std::size_t bytes, void* to,
                 unsigned thread) {
  block_runner& block = runner();
  const std::size_t at = array.offset + first;
  judge(block.shadow().read(at, bytes, block.actor(thread)), array, false, thread);
  std::memcpy(to, block.shared_memory() + at, bytes);
}

void write_shared(const shared_place& array, std::size_t first, std::size_t bytes, const void* from,
                  unsigned thread) {
  block_runner& block = runner();
  const std::size_t at = array.offset + first;
  judge(block.shadow().write(at, bytes, block.actor(thread)), array, true, thread);
  std::memcpy(block.shared_memory() + at, from, bytes);
}

void start_copy(const shared_place& array, std::size_t first, std::size_t bytes, const void* from,
                std::size_t valid) {
  block_runner& block = runner();
  const unsigned thread = block.thread_number();
  judge(block.shadow().start_copy(array.offset + first, bytes, block.actor(thread)), array, true,
        thread);
  block.thread().open_copies.push_back({array, first, bytes, from, valid});
}

void commit_copies() {
  thread_state& thread = runner().thread();
  thread.copy_groups.push_back(std::move(thread.open_copies));
  thread.open_copies.clear();
}

void wait_copies(std::size_t left) {
  block_runner& block = runner();
  thread_state& thread = block.thread();
  for (; thread.copy_groups.size() > left; thread.copy_groups.erase(thread.copy_groups.begin())) {
    for (const copy& one : thread.copy_groups.front()) {
      const std::size_t at = one.array.offset + one.first;
      std::memset(block.shared_memory() + at, 0, one.bytes);
      if (one.valid > 0) std::memcpy(block.shared_memory() + at, one.from, one.valid);
      block.shadow().finish_copy(at, one.bytes, block.actor(block.thread_number()));
    }
  }
}

}  // namespace cedar::kernels::cuda::emulation
