// A stream: work that a device does in order; and events, by which streams wait for each other.
//
// Functions return when the work is noted, not when it is done; what it uses must stay until then.
// A stream is used by one thread at a time. Errors of all functions: io (CUDA's, maybe of earlier
// work).
#pragma once

#include <cstddef>

#include "kernels/cuda/handles/device.hpp"
#include "kernels/cuda/handles/memory.hpp"
#include "runtime/base/result.hpp"

namespace cedar::kernels::cuda {

class event;

class stream {
 public:
  static result<stream> make(const device_ref& device);

  /// Bytes [0, bytes) of `from` to [offset, offset + bytes) of `to`. Defect: beyond either's end.
  result<void> upload(const pinned_buffer& from, const device_buffer& to, std::size_t bytes,
                      std::size_t offset = 0) const;
  /// Bytes [offset, offset + bytes) of `from` to [0, bytes) of `to`. Defect: beyond either's end.
  result<void> download(const device_buffer& from, const pinned_buffer& to, std::size_t bytes,
                        std::size_t offset = 0) const;
  /// Zeros all of it.
  result<void> clear(const device_buffer& memory) const;
  /// What follows begins when `reached` is, as it was last recorded.
  result<void> wait(const event& reached) const;
  /// Blocks until all work is done.
  result<void> finish() const;

  const device_ref& device() const noexcept { return native_.get_deleter().device; }
  /// For kernel launches.
  native_stream* native() const noexcept { return native_.get(); }

 private:
  stream(const device_ref& device, native_stream* native) : native_(native, {device}) {}

  detail::owned<native_stream, &runtime::release_stream> native_;
};

class event {
 public:
  static result<event> make(const device_ref& device);

  /// Reached when the work that `of` has by now is done. Again: the earlier mark is forgotten.
  result<void> record(const stream& of) const;
  /// True if it was never recorded.
  result<bool> reached() const;
  /// Blocks until it is reached.
  result<void> finish() const;

  const device_ref& device() const noexcept { return native_.get_deleter().device; }
  native_event* native() const noexcept { return native_.get(); }

 private:
  event(const device_ref& device, native_event* native) : native_(native, {device}) {}

  detail::owned<native_event, &runtime::release_event> native_;
};

}  // namespace cedar::kernels::cuda
