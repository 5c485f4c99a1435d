// Global KV of one owner for one sequence: entries 0, 1, 2, ... in pages of a pool.
//
// 1. `written` entries may be read by later rows; entries beyond what the verdict commits are
// rolled back by truncate().
// 2. Full pages may be those of another cache too (share()); such a page is never written again. A
// page goes back to the pool with the last cache that holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/base/matrix_view.hpp"
#include "runtime/memory/kv_page_pool.hpp"

namespace cedar::memory {

class global_cache {
 public:
  explicit global_cache(kv_page_pool& pool) : pool_(&pool) {}
  ~global_cache() = default;
  global_cache(global_cache&& other) noexcept;
  global_cache& operator=(global_cache&&) = delete;

  std::uint32_t written() const noexcept { return written_; }
  /// Index keys, and main entries, of so many entries from a multiple of it on lie side by side.
  std::uint32_t page_entries() const noexcept { return pool_->layout().page_entries; }
  /// Adds the pages that it holds to `to`, alone or with others, with the bytes of each.
  void list_pages(std::map<const std::byte*, std::size_t>& to) const {
    for (const auto& page : pages_) to[page.get()] = pool_->layout().page_bytes();
  }

  /// Takes the pages of entries [0, entries), so that appending up to there cannot fail. On
  /// errc::capacity nothing changed. Pages that are not filled go back with truncate().
  result<void> reserve(std::uint32_t entries);

  /// Makes an empty cache begin with entries [0, entries) of `from`, a cache of the same pool: the
  /// first `shared` of them, whole pages, in the same memory, the others copied. On errc::capacity
  /// nothing changed.
  result<void> share(const global_cache& from, std::uint32_t shared, std::uint32_t entries);

  /// Appends packed entries; `main` and `index_keys` have the same number of rows. On
  /// errc::capacity nothing was appended.
  result<void> append(kernels::matrix_view<const std::byte> main,
                      kernels::matrix_view<const std::byte> index_keys);

  /// Forgets entries from `entries` on and returns pages that hold none.
  void truncate(std::uint32_t entries);

  /// Valid until the cache changes. index < written().
  const std::byte* main_entry(std::uint32_t index) const noexcept {
    const page_layout& layout = pool_->layout();
    return pages_[index / layout.page_entries].get() +
           (index % layout.page_entries) * layout.main_entry_bytes;
  }
  const std::byte* index_key(std::uint32_t index) const noexcept {
    const page_layout& layout = pool_->layout();
    return pages_[index / layout.page_entries].get() +
           layout.page_entries * layout.main_entry_bytes +
           (index % layout.page_entries) * layout.index_entry_bytes;
  }

 private:
  kv_page_pool* pool_;
  /// SHARED: with the caches that begin with the same entries; the last one releases the page.
  std::vector<std::shared_ptr<std::byte>> pages_;
  std::uint32_t written_ = 0;
};

}  // namespace cedar::memory
