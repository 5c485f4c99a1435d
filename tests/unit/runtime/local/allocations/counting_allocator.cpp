// The names of the C library in front of its own functions, which glibc also exports as __libc_*.
#include "tests/unit/runtime/local/allocations/counting_allocator.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {
std::atomic<std::uint64_t> count{0};
}  // namespace

namespace cedar::test {
std::uint64_t allocations() noexcept {
  return count.load(std::memory_order_relaxed);
}
}  // namespace cedar::test

extern "C" {

void* malloc(std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}

void* calloc(std::size_t elements, std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(elements, size);
}

void* realloc(void* memory, std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return memalign(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}
