#include "runtime/memory/global_cache.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/check.hpp"

namespace cedar::memory {

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
      pages_.resize(held);
      return fail(page.error());
    }
    pages_.emplace_back(*page, [pool = pool_](std::byte* unused) { pool->release(unused); });
  }
  return {};
}

result<void> global_cache::share(const global_cache& from, std::uint32_t shared,
                                 std::uint32_t entries) {
  const page_layout& layout = pool_->layout();
  CEDAR_REQUIRE(pool_ == from.pool_ && pages_.empty() && entries <= from.written_ &&
                    shared <= entries && shared % layout.page_entries == 0,
                "a cache begins with whole pages of one of the same pool");
  pages_.assign(from.pages_.begin(), from.pages_.begin() + shared / layout.page_entries);
  if (const result<void> reserved = reserve(entries); !reserved) {
    pages_.clear();
    return reserved;
  }
  written_ = entries;
  for (std::uint32_t i = shared; i < entries; ++i) {
    std::memcpy(const_cast<std::byte*>(main_entry(i)), from.main_entry(i), layout.main_entry_bytes);
    std::memcpy(const_cast<std::byte*>(index_key(i)), from.index_key(i), layout.index_entry_bytes);
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
    CEDAR_ASSERT(pages_[index / layout.page_entries].use_count() == 1,
                 "a page that others read is not written");
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
  if (pages_.size() > wanted) pages_.resize(wanted);
}

}  // namespace cedar::memory
