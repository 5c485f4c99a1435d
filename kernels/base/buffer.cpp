#include "kernels/base/buffer.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "kernels/base/check.hpp"

namespace cedar::kernels {

namespace {

/// Of x86-64 and, with base pages of 4 KiB, of AArch64. Buffers from this size on ask for them: a
/// cache, an arena or a scratch is read in many places, each of which needs its own translation.
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::size_t alignment_of(std::size_t bytes) {
  return bytes < huge_page_bytes ? buffer_alignment : huge_page_bytes;
}

/// Whole lines: what reads a vector at the end of a buffer stays inside it.
std::size_t allocated_bytes(std::size_t bytes) {
  const std::size_t alignment = alignment_of(bytes);
  return (bytes + alignment - 1) / alignment * alignment;
}

/// A wish: where the system has no such pages, or none is free, the others serve.
void ask_for_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
  if (bytes >= huge_page_bytes) (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
}

}  // namespace

buffer::buffer(std::size_t bytes) {
  *this = uninitialized(bytes);
  const std::size_t lines = (bytes + buffer_alignment - 1) / buffer_alignment;
  if (bytes > 0) std::memset(memory_.get(), 0, lines * buffer_alignment);
}

buffer buffer::uninitialized(std::size_t bytes) {
  buffer fresh;
  if (bytes == 0) return fresh;
  const std::size_t taken = allocated_bytes(bytes);
  void* memory = std::aligned_alloc(alignment_of(bytes), taken);
  if (memory == nullptr) throw std::bad_alloc();
  ask_for_huge_pages(memory, taken);
  fresh.memory_.reset(static_cast<std::byte*>(memory));
  fresh.bytes_ = bytes;
  return fresh;
}

void buffer::truncate(std::size_t bytes) {
  CEDAR_REQUIRE(bytes <= bytes_, "a buffer cannot grow");
  bytes_ = bytes;
}

void buffer::release::operator()(std::byte* memory) const noexcept {
  std::free(memory);
}

}  // namespace cedar::kernels
