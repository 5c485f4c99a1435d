#include "kernels/cuda/handles/stream.hpp"

#include <string>

#include "kernels/base/check.hpp"

namespace cedar::kernels::cuda {

namespace {

/// [offset, offset + bytes) lies in the memory.
template <class Memory>
void require_inside(const Memory& memory, std::size_t offset, std::size_t bytes) {
  CEDAR_REQUIRE(offset <= memory.bytes() && bytes <= memory.bytes() - offset,
                std::to_string(bytes) + " bytes from " + std::to_string(offset) +
                    " on lie beyond a buffer of " + std::to_string(memory.bytes()));
}

}  // namespace

result<stream> stream::make(const device_ref& device) {
  const auto native = device.api->make_stream(device.index);
  if (!native) return fail(native.error().with("a stream"));
  return stream(device, *native);
}

result<void> stream::upload(const pinned_buffer& from, const device_buffer& to, std::size_t bytes,
                            std::size_t offset) const {
  require_same(device(), from.device(), "stream and pinned buffer");
  require_same(device(), to.device(), "stream and buffer");
  require_inside(from, 0, bytes);
  require_inside(to, offset, bytes);
  return device().api->copy(device().index, native(), to.data() + offset, from.data(), bytes);
}

result<void> stream::download(const device_buffer& from, const pinned_buffer& to, std::size_t bytes,
                              std::size_t offset) const {
  require_same(device(), from.device(), "stream and buffer");
  require_same(device(), to.device(), "stream and pinned buffer");
  require_inside(from, offset, bytes);
  require_inside(to, 0, bytes);
  return device().api->copy(device().index, native(), to.data(), from.data() + offset, bytes);
}

result<void> stream::clear(const device_buffer& memory) const {
  require_same(device(), memory.device(), "stream and buffer");
  return device().api->clear(device().index, native(), memory.data(), memory.bytes());
}

result<void> stream::wait(const event& reached) const {
  require_same(device(), reached.device(), "stream and event");
  return device().api->wait(device().index, native(), reached.native());
}

result<void> stream::finish() const {
  return device().api->finish(device().index, native());
}

result<event> event::make(const device_ref& device) {
  const auto native = device.api->make_event(device.index);
  if (!native) return fail(native.error().with("an event"));
  return event(device, *native);
}

result<void> event::record(const stream& of) const {
  require_same(device(), of.device(), "event and stream");
  return device().api->record(device().index, of.native(), native());
}

result<bool> event::reached() const {
  return device().api->reached(device().index, native());
}

result<void> event::finish() const {
  return device().api->finish(device().index, native());
}

}  // namespace cedar::kernels::cuda
