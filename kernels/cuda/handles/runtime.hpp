// What the handles need of CUDA, as an interface: the one seam between cedar and the CUDA runtime.
//
// Two implementations: cudart_runtime.cpp, the only file that sees cudaError_t, in the module; and
// a queue in memory, by which the tests judge the handles anywhere. Every call names the device, so
// that no state of a thread ("the current device") is part of the interface.
//
// 1. Work that is given to a stream runs later, in the stream's order; streams run beside each
//    other.
// 2. Release functions take what the matching function made, once; work that still uses it must
//    have ended, which the owner knows.
// 3. Errors are CUDA's, translated: capacity (memory), not_found (driver, device), mismatch
//    (driver too old), defect (a call that cannot be right), io (all else). A kernel that failed
//    is reported by a later call, and CUDA then refuses every further one: the process must end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/interface/plugin.hpp"
#include "runtime/base/result.hpp"

namespace cedar::kernels::cuda {

// Objects of the runtime; nobody looks inside.
struct native_stream;
struct native_event;
struct native_graph;
struct native_graph_exec;

class runtime {
 public:
  virtual ~runtime() = default;

  /// By index; never none. Errors: those of plugin::devices.
  virtual result<std::vector<device_description>> devices() = 0;

  /// Memory of the device, 256-byte aligned, contents undefined. bytes > 0.
  virtual result<std::byte*> allocate(std::uint32_t device, std::size_t bytes) = 0;
  virtual void release(std::uint32_t device, std::byte* memory) noexcept = 0;
  /// Memory of the host that does not move, and that the device reaches by the same address.
  virtual result<std::byte*> allocate_pinned(std::uint32_t device, std::size_t bytes) = 0;
  virtual void release_pinned(std::uint32_t device, std::byte* memory) noexcept = 0;

  virtual result<native_stream*> make_stream(std::uint32_t device) = 0;
  virtual void release_stream(std::uint32_t device, native_stream* stream) noexcept = 0;
  /// Blocks until all work of the stream is done.
  virtual result<void> finish(std::uint32_t device, native_stream* stream) = 0;
  /// Copies between any two of: memory of the device, pinned memory. Both stay until it is done.
  virtual result<void> copy(std::uint32_t device, native_stream* stream, std::byte* to,
                            const std::byte* from, std::size_t bytes) = 0;
  virtual result<void> clear(std::uint32_t device, native_stream* stream, std::byte* memory,
                             std::size_t bytes) = 0;

  virtual result<native_event*> make_event(std::uint32_t device) = 0;
  virtual void release_event(std::uint32_t device, native_event* event) noexcept = 0;
  /// The event is reached when the work that the stream has by now is done.
  virtual result<void> record(std::uint32_t device, native_stream* stream, native_event* event) = 0;
  /// What the stream is given from now on begins when the event, as last recorded, is reached.
  virtual result<void> wait(std::uint32_t device, native_stream* stream, native_event* event) = 0;
  virtual result<bool> reached(std::uint32_t device, native_event* event) = 0;
  /// Blocks until it is reached.
  virtual result<void> finish(std::uint32_t device, native_event* event) = 0;

  /// Until end_capture the stream notes work instead of doing it.
  virtual result<void> begin_capture(std::uint32_t device, native_stream* stream) = 0;
  virtual result<native_graph*> end_capture(std::uint32_t device, native_stream* stream) = 0;
  virtual void release_graph(std::uint32_t device, native_graph* graph) noexcept = 0;
  virtual result<native_graph_exec*> instantiate(std::uint32_t device, native_graph* graph) = 0;
  virtual void release_graph_exec(std::uint32_t device, native_graph_exec* exec) noexcept = 0;
  virtual result<void> launch(std::uint32_t device, native_stream* stream,
                              native_graph_exec* exec) = 0;
};

}  // namespace cedar::kernels::cuda
