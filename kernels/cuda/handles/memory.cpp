#include "kernels/cuda/handles/memory.hpp"

#include <string>

#include "kernels/base/check.hpp"

namespace cedar::kernels::cuda {

namespace {

std::string wish(const device_ref& device, std::size_t bytes, const char* kind) {
  return "CUDA device " + std::to_string(device.index) + ": " + std::to_string(bytes) +
         " bytes of " + kind + " memory";
}

}  // namespace

result<device_buffer> device_buffer::make(const device_ref& device, std::size_t bytes) {
  CEDAR_REQUIRE(bytes > 0, "a buffer has bytes");
  const auto memory = device.api->allocate(device.index, bytes);
  if (!memory) return fail(memory.error().with(wish(device, bytes, "its")));
  return device_buffer(device, *memory, bytes);
}

result<pinned_buffer> pinned_buffer::make(const device_ref& device, std::size_t bytes) {
  CEDAR_REQUIRE(bytes > 0, "a buffer has bytes");
  const auto memory = device.api->allocate_pinned(device.index, bytes);
  if (!memory) return fail(memory.error().with(wish(device, bytes, "pinned")));
  return pinned_buffer(device, *memory, bytes);
}

}  // namespace cedar::kernels::cuda
