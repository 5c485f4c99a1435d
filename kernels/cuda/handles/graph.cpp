#include "kernels/cuda/handles/graph.hpp"

namespace cedar::kernels::cuda {

result<void> graph::begin(const stream& on) {
  const device_ref& device = on.device();
  return device.api->begin_capture(device.index, on.native());
}

result<graph> graph::end(const stream& on, const result<void>& done) {
  const device_ref& device = on.device();
  const auto native = device.api->end_capture(device.index, on.native());
  if (!native) return fail((done ? native.error() : done.error()).with("a graph"));
  graph made(device, *native);
  if (!done) return fail(done.error().with("a graph"));
  return made;
}

result<graph_exec> graph_exec::make(const graph& of) {
  const device_ref& device = of.device();
  const auto native = device.api->instantiate(device.index, of.native());
  if (!native) return fail(native.error().with("a graph"));
  return graph_exec(device, *native);
}

result<void> graph_exec::launch(const stream& on) const {
  require_same(device(), on.device(), "graph and stream");
  return device().api->launch(device().index, on.native(), native_.get());
}

}  // namespace cedar::kernels::cuda
