#include "tests/unit/kernels/cuda/handles/queued_runtime.hpp"

#include <cstring>
#include <deque>
#include <functional>

#include "kernels/base/check.hpp"

namespace cedar::test {

using namespace kernels::cuda;

namespace {

constexpr std::byte fresh{0xa5};

tl::unexpected<error> out_of_memory() {
  return fail(errc::capacity, "CUDA: out of memory");
}

}  // namespace

struct queued_runtime::work_list {
  std::vector<std::function<void()>> work;
  bool broken = false;  ///< by a wait of the host while it was noted
};

struct queued_runtime::queue {
  std::deque<std::function<void()>> work;
  std::uint64_t given = 0;
  std::uint64_t done = 0;
  std::shared_ptr<work_list> capture;

  void run_until(std::uint64_t count) {
    while (done < count) {
      const auto next = std::move(work.front());
      work.pop_front();
      ++done;
      next();
    }
  }
};

struct queued_runtime::mark {
  queue* of = nullptr;
  std::uint64_t count = 0;
  std::shared_ptr<work_list> capture;
};

queued_runtime::queued_runtime() = default;
queued_runtime::~queued_runtime() = default;

std::size_t queued_runtime::alive() const {
  return memory_.size() + queues_.size() + marks_.size() + graphs_.size();
}

bool queued_runtime::may_make() {
  return !calls_left_ || (*calls_left_)-- > 0;
}

result<std::vector<device_description>> queued_runtime::devices() {
  return std::vector<device_description>{{0, "queue", 1U << 30U, kernels::plan::h200},
                                         {1, "queue", 1U << 30U, kernels::plan::h200}};
}

result<std::byte*> queued_runtime::take(std::size_t bytes) {
  if (!may_make()) return out_of_memory();
  auto made = std::make_unique<std::byte[]>(bytes);
  std::memset(made.get(), static_cast<int>(fresh), bytes);
  std::byte* const address = made.get();
  memory_[address] = std::move(made);
  bytes_[address] = bytes;
  return address;
}

void queued_runtime::drop(std::byte* memory) noexcept {
  memory_.erase(memory);
  bytes_.erase(memory);
}

result<std::byte*> queued_runtime::allocate(std::uint32_t, std::size_t bytes) {
  return take(bytes);
}
void queued_runtime::release(std::uint32_t, std::byte* memory) noexcept {
  drop(memory);
}
result<std::byte*> queued_runtime::allocate_pinned(std::uint32_t, std::size_t bytes) {
  return take(bytes);
}
void queued_runtime::release_pinned(std::uint32_t, std::byte* memory) noexcept {
  drop(memory);
}

void queued_runtime::require_alive(const std::byte* memory, std::size_t bytes) const {
  auto after = bytes_.upper_bound(const_cast<std::byte*>(memory));
  const bool inside = after != bytes_.begin() && [&] {
    const auto& [begin, size] = *std::prev(after);
    return memory + bytes <= begin + size;
  }();
  CEDAR_REQUIRE(inside, "memory that is used has been released, or never was");
}

void queued_runtime::give(queue& to, std::function<void()> work) {
  if (to.capture) {
    to.capture->work.push_back(std::move(work));
    return;
  }
  ++to.given;
  to.work.push_back(std::move(work));
}

result<native_stream*> queued_runtime::make_stream(std::uint32_t) {
  if (!may_make()) return out_of_memory();
  auto made = std::make_unique<queue>();
  auto* const address = reinterpret_cast<native_stream*>(made.get());
  queues_[address] = std::move(made);
  return address;
}

void queued_runtime::release_stream(std::uint32_t, native_stream* stream) noexcept {
  queues_.erase(stream);
}

result<void> queued_runtime::finish(std::uint32_t, native_stream* stream) {
  queue& of = *queues_.at(stream);
  if (of.capture) {
    of.capture->broken = true;
    return fail(errc::io, "CUDA: the stream is being captured");
  }
  of.run_until(of.given);
  return {};
}

result<void> queued_runtime::copy(std::uint32_t, native_stream* stream, std::byte* to,
                                  const std::byte* from, std::size_t bytes) {
  give(*queues_.at(stream), [=, this] {
    require_alive(to, bytes);
    require_alive(from, bytes);
    std::memcpy(to, from, bytes);
  });
  return {};
}

result<void> queued_runtime::clear(std::uint32_t, native_stream* stream, std::byte* memory,
                                   std::size_t bytes) {
  give(*queues_.at(stream), [=, this] {
    require_alive(memory, bytes);
    std::memset(memory, 0, bytes);
  });
  return {};
}

result<native_event*> queued_runtime::make_event(std::uint32_t) {
  if (!may_make()) return out_of_memory();
  auto made = std::make_unique<mark>();
  auto* const address = reinterpret_cast<native_event*>(made.get());
  marks_[address] = std::move(made);
  return address;
}

void queued_runtime::release_event(std::uint32_t, native_event* event) noexcept {
  marks_.erase(event);
}

result<void> queued_runtime::record(std::uint32_t, native_stream* stream, native_event* event) {
  queue& of = *queues_.at(stream);
  *marks_.at(event) = {&of, of.given, of.capture};
  return {};
}

result<void> queued_runtime::wait(std::uint32_t, native_stream* stream, native_event* event) {
  const mark until = *marks_.at(event);
  queue& of = *queues_.at(stream);
  if (until.capture) {
    of.capture = until.capture;  // noted in the order of the calls, which is one that is allowed
  } else if (until.of != nullptr) {
    give(of, [until] { until.of->run_until(until.count); });
  }
  return {};
}

result<bool> queued_runtime::reached(std::uint32_t, native_event* event) {
  const mark& until = *marks_.at(event);
  return until.of == nullptr || until.of->done >= until.count;
}

result<void> queued_runtime::finish(std::uint32_t, native_event* event) {
  const mark until = *marks_.at(event);
  if (until.of != nullptr) until.of->run_until(until.count);
  return {};
}

result<void> queued_runtime::begin_capture(std::uint32_t, native_stream* stream) {
  queues_.at(stream)->capture = std::make_shared<work_list>();
  return {};
}

result<native_graph*> queued_runtime::end_capture(std::uint32_t, native_stream* stream) {
  const auto noted = queues_.at(stream)->capture;
  for (auto& [address, each] : queues_)
    if (each->capture == noted) each->capture = nullptr;
  if (noted->broken) return fail(errc::io, "CUDA: the capture was broken");
  auto* const address = new char;
  graphs_[address] = noted;
  return reinterpret_cast<native_graph*>(address);
}

void queued_runtime::release_graph(std::uint32_t, native_graph* graph) noexcept {
  graphs_.erase(graph);
  delete reinterpret_cast<char*>(graph);
}

result<native_graph_exec*> queued_runtime::instantiate(std::uint32_t, native_graph* graph) {
  if (!may_make()) return out_of_memory();
  auto* const address = new char;
  graphs_[address] = graphs_.at(graph);
  return reinterpret_cast<native_graph_exec*>(address);
}

void queued_runtime::release_graph_exec(std::uint32_t, native_graph_exec* exec) noexcept {
  graphs_.erase(exec);
  delete reinterpret_cast<char*>(exec);
}

result<void> queued_runtime::launch(std::uint32_t, native_stream* stream, native_graph_exec* exec) {
  queue& to = *queues_.at(stream);
  for (const auto& each : graphs_.at(exec)->work) give(to, each);
  return {};
}

}  // namespace cedar::test
