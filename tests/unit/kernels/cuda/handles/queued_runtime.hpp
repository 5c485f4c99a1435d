// A runtime in memory that is as late as CUDA may be: work of a stream is done when somebody waits
// for it, and not before. A wait that is missing shows as bytes that have not arrived.
//
// It counts what is alive, refuses addresses that are not (defect), and fails on demand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "kernels/cuda/handles/runtime.hpp"

namespace cedar::test {

class queued_runtime final : public kernels::cuda::runtime {
 public:
  queued_runtime();
  ~queued_runtime() override;

  /// Objects and memory that have not been released.
  std::size_t alive() const;
  /// After so many calls that make something, the next one fails with errc::capacity.
  void fail_after(std::size_t calls) { calls_left_ = calls; }

  result<std::vector<kernels::cuda::device_description>> devices() override;
  result<std::byte*> allocate(std::uint32_t device, std::size_t bytes) override;
  void release(std::uint32_t device, std::byte* memory) noexcept override;
  result<std::byte*> allocate_pinned(std::uint32_t device, std::size_t bytes) override;
  void release_pinned(std::uint32_t device, std::byte* memory) noexcept override;
  result<kernels::cuda::native_stream*> make_stream(std::uint32_t device) override;
  void release_stream(std::uint32_t device, kernels::cuda::native_stream* stream) noexcept override;
  result<void> finish(std::uint32_t device, kernels::cuda::native_stream* stream) override;
  result<void> copy(std::uint32_t device, kernels::cuda::native_stream* stream, std::byte* to,
                    const std::byte* from, std::size_t bytes) override;
  result<void> clear(std::uint32_t device, kernels::cuda::native_stream* stream, std::byte* memory,
                     std::size_t bytes) override;
  result<kernels::cuda::native_event*> make_event(std::uint32_t device) override;
  void release_event(std::uint32_t device, kernels::cuda::native_event* event) noexcept override;
  result<void> record(std::uint32_t device, kernels::cuda::native_stream* stream,
                      kernels::cuda::native_event* event) override;
  result<void> wait(std::uint32_t device, kernels::cuda::native_stream* stream,
                    kernels::cuda::native_event* event) override;
  result<bool> reached(std::uint32_t device, kernels::cuda::native_event* event) override;
  result<void> finish(std::uint32_t device, kernels::cuda::native_event* event) override;
  result<void> begin_capture(std::uint32_t device, kernels::cuda::native_stream* stream) override;
  result<kernels::cuda::native_graph*> end_capture(std::uint32_t device,
                                                   kernels::cuda::native_stream* stream) override;
  void release_graph(std::uint32_t device, kernels::cuda::native_graph* graph) noexcept override;
  result<kernels::cuda::native_graph_exec*> instantiate(
      std::uint32_t device, kernels::cuda::native_graph* graph) override;
  void release_graph_exec(std::uint32_t device,
                          kernels::cuda::native_graph_exec* exec) noexcept override;
  result<void> launch(std::uint32_t device, kernels::cuda::native_stream* stream,
                      kernels::cuda::native_graph_exec* exec) override;

 private:
  struct queue;
  struct mark;
  struct work_list;

  bool may_make();
  result<std::byte*> take(std::size_t bytes);
  void drop(std::byte* memory) noexcept;
  void require_alive(const std::byte* memory, std::size_t bytes) const;
  void give(queue& to, std::function<void()> work);

  std::map<std::byte*, std::unique_ptr<std::byte[]>> memory_;
  std::map<std::byte*, std::size_t> bytes_;
  std::map<kernels::cuda::native_stream*, std::unique_ptr<queue>> queues_;
  std::map<kernels::cuda::native_event*, std::unique_ptr<mark>> marks_;
  /// Of graphs and their executable forms, by address.
  std::map<void*, std::shared_ptr<work_list>> graphs_;
  std::optional<std::size_t> calls_left_;
};

}  // namespace cedar::test
