#include "runtime/memory/kv_page_pool.hpp"

#include "kernels/base/check.hpp"

namespace cedar::memory {

kv_page_pool::kv_page_pool(page_layout layout, std::size_t pages_max)
    : layout_(layout), pages_max_(pages_max) {
  storage_.reserve(pages_max);
  free_.reserve(pages_max);
}

result<std::byte*> kv_page_pool::allocate() {
  if (free_.empty()) {
    if (storage_.size() == pages_max_)
      return fail(errc::capacity, "all " + std::to_string(pages_max_) +
                                      " pages of global KV are in use; shorten the context, lower "
                                      "the number of requests, or raise limits.context");
    storage_.emplace_back(layout_.page_bytes());
    free_.push_back(storage_.back().data());
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
