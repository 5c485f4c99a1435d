#include "runtime/memory/kv_page_pool.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"

namespace cedar::memory {

namespace {
/// Pages are made together, as many as fill this: few allocations, and huge pages where allowed.
constexpr std::size_t slab_bytes = std::size_t{4} << 20;
}  // namespace

kv_page_pool::kv_page_pool(page_layout layout, std::size_t pages_max)
    : layout_(layout), pages_max_(pages_max) {
  storage_.reserve(pages_max);
  free_.reserve(pages_max);
}

result<std::byte*> kv_page_pool::allocate() {
  if (free_.empty()) {
    const std::size_t left = pages_max_ - pages_in_use_;
    if (left == 0)
      return fail(errc::capacity, "all " + std::to_string(pages_max_) +
                                      " pages of global KV are in use; shorten the context, lower "
                                      "the number of requests, or raise limits.context");
    const std::size_t alignment = kernels::buffer_alignment;
    const std::size_t stride = (layout_.page_bytes() + alignment - 1) / alignment * alignment;
    const std::size_t count = std::clamp<std::size_t>(slab_bytes / stride, 1, left);
    storage_.push_back(kernels::buffer::uninitialized(count * stride));
    for (std::size_t i = count; i > 0; --i)
      free_.push_back(storage_.back().data() + (i - 1) * stride);
  }
  std::byte* page = free_.back();
  free_.pop_back();
  ++pages_in_use_;
  return page;
}

void kv_page_pool::release(std::byte* page) {
  CEDAR_REQUIRE(page != nullptr && pages_in_use_ > 0, "release of a page that is not in use");
  free_.push_back(page);
  --pages_in_use_;
}

}  // namespace cedar::memory
