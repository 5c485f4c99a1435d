// Memory of a device, and memory of the host that the device reaches.
//
// Contents are undefined after construction. Whoever lets go of memory knows that no stream uses it
// any more.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/cuda/handles/device.hpp"
#include "runtime/base/result.hpp"

namespace cedar::kernels::cuda {

namespace detail {

/// What both kinds of memory have in common.
template <auto Release>
class memory_block {
 public:
  std::byte* data() const noexcept { return memory_.get(); }
  std::size_t bytes() const noexcept { return bytes_; }
  const device_ref& device() const noexcept { return memory_.get_deleter().device; }

 protected:
  memory_block(const device_ref& device, std::byte* memory, std::size_t bytes)
      : memory_(memory, {device}), bytes_(bytes) {}

 private:
  owned<std::byte, Release> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace detail

/// Memory of the device; its addresses mean nothing to the host.
class device_buffer : public detail::memory_block<&runtime::release> {
 public:
  /// bytes > 0. Error: capacity, naming device and bytes.
  static result<device_buffer> make(const device_ref& device, std::size_t bytes);

 private:
  using memory_block::memory_block;
};

/// Memory of the host that never moves: copies from and to it run beside the host's own work, and
/// kernels of the device read and write it, slowly, by the same address.
class pinned_buffer : public detail::memory_block<&runtime::release_pinned> {
 public:
  /// bytes > 0. Error: capacity, naming device and bytes.
  static result<pinned_buffer> make(const device_ref& device, std::size_t bytes);

  std::span<std::byte> span() const noexcept { return {data(), bytes()}; }

 private:
  using memory_block::memory_block;
};

}  // namespace cedar::kernels::cuda
