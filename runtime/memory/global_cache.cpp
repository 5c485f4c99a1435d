#include "runtime/memory/global_cache.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/check.hpp"

namespace cedar::memory {

global_cache::~global_cache() {
  for (std::byte* page : pages_) pool_->release(page);
}

global_cache::global_cache(global_cache&& other) noexcept
    : pool_(other.pool_),
      pages_(std::exchange(other.pages_, {})),
      written_(std::exchange(other.written_, 0)) {}

result<void> global_cache::reserve(std::uint32_t entries) {
  const std::uint32_t per_page = pool_->layout().page_entries;
  const std::size_t wanted = (entries + per_page - 1) / per_page;
  const std::size_t held = pages_.size();
  while (pages_.size() < wanted) {
    const result<std::byte*> page = pool_->allocate();
    if (!page) {
      while (pages_.size() > held) {
        pool_->release(pages_.back());
        pages_.pop_back();
      }
      return fail(page.error());
    }
    pages_.push_back(*page);
  }
  return {};
}

result<void> global_cache::append(kernels::matrix_view<const std::byte> main,
                                  kernels::matrix_view<const std::byte> index_keys) {
  const page_layout& layout = pool_->layout();
  CEDAR_REQUIRE(main.cols == layout.main_entry_bytes && main.rows == index_keys.rows &&
                    index_keys.cols == layout.index_entry_bytes,
                "entries of another layout than the pool's");
  const auto count = static_cast<std::uint32_t>(main.rows);
  if (const result<void> reserved = reserve(written_ + count); !reserved) return reserved;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t index = written_ + i;
    std::memcpy(const_cast<std::byte*>(main_entry(index)), main.row_data(i), main.cols);
    std::memcpy(const_cast<std::byte*>(index_key(index)), index_keys.row_data(i), index_keys.cols);
  }
  written_ += count;
  return {};
}

void global_cache::truncate(std::uint32_t entries) {
  written_ = std::min(written_, entries);
  const std::uint32_t per_page = pool_->layout().page_entries;
  const std::size_t wanted = (written_ + per_page - 1) / per_page;
  while (pages_.size() > wanted) {
    pool_->release(pages_.back());
    pages_.pop_back();
  }
}

}  // namespace cedar::memory
