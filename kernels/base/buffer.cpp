#include "kernels/base/buffer.hpp"

#include <cstring>
#include <new>

namespace cedar::kernels {

buffer::buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const std::size_t rounded = (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  memory_.reset(
      static_cast<std::byte*>(::operator new(rounded, std::align_val_t{buffer_alignment})));
  std::memset(memory_.get(), 0, rounded);
}

void buffer::release::operator()(std::byte* memory) const noexcept {
  ::operator delete(memory, std::align_val_t{buffer_alignment});
}

}  // namespace cedar::kernels
