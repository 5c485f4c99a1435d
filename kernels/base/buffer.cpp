#include "kernels/base/buffer.hpp"

#include <cstring>
#include <new>

#include "kernels/base/check.hpp"

namespace cedar::kernels {

namespace {

std::size_t allocated_bytes(std::size_t bytes) {
  return (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
}

}  // namespace

buffer::buffer(std::size_t bytes) {
  *this = uninitialized(bytes);
  if (bytes > 0) std::memset(memory_.get(), 0, allocated_bytes(bytes));
}

buffer buffer::uninitialized(std::size_t bytes) {
  buffer fresh;
  if (bytes == 0) return fresh;
  fresh.memory_.reset(static_cast<std::byte*>(
      ::operator new (allocated_bytes(bytes), std::align_val_t{buffer_alignment})));
  fresh.bytes_ = bytes;
  return fresh;
}

void buffer::truncate(std::size_t bytes) {
  CEDAR_REQUIRE(bytes <= bytes_, "a buffer cannot grow");
  bytes_ = bytes;
}

void buffer::release::operator()(std::byte* memory) const noexcept {
  ::operator delete (memory, std::align_val_t{buffer_alignment});
}

}  // namespace cedar::kernels
