// A graph: work that was noted once and is launched as one, again and again.
//
// Addresses and sizes are those of the capture: what changes from launch to launch is read from
// memory.
#pragma once

#include "kernels/cuda/handles/device.hpp"
#include "kernels/cuda/handles/stream.hpp"
#include "runtime/base/result.hpp"

namespace cedar::kernels::cuda {

class graph {
 public:
  /// Calls `work`, which gives work to `on` and to streams that wait for events of it, and notes it
  /// all without doing any of it. `work` returns result<void>; its error is returned, and the
  /// stream is as before. It must not block (finish) nor allocate.
  template <class Work>
  static result<graph> capture(const stream& on, Work&& work) {
    if (const result<void> begun = begin(on); !begun) return fail(begun.error());
    const result<void> done = work();
    return end(on, done);
  }

  const device_ref& device() const noexcept { return native_.get_deleter().device; }
  native_graph* native() const noexcept { return native_.get(); }

 private:
  graph(const device_ref& device, native_graph* native) : native_(native, {device}) {}

  static result<void> begin(const stream& on);
  static result<graph> end(const stream& on, const result<void>& done);

  detail::owned<native_graph, &runtime::release_graph> native_;
};

/// A graph in the form that a device runs. Does not need the graph any more.
class graph_exec {
 public:
  static result<graph_exec> make(const graph& of);

  /// Gives its work to the stream, as one. Launches of one graph_exec follow each other.
  result<void> launch(const stream& on) const;

  const device_ref& device() const noexcept { return native_.get_deleter().device; }

 private:
  graph_exec(const device_ref& device, native_graph_exec* native) : native_(native, {device}) {}

  detail::owned<native_graph_exec, &runtime::release_graph_exec> native_;
};

}  // namespace cedar::kernels::cuda
