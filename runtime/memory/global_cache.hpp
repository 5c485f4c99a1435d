// Global KV of one owner for one sequence: entries 0, 1, 2, ... in pages of a pool.
//
// Lengths: `written` entries may be read by later rows; entries beyond what the verdict commits are
// rolled back by truncate(). Pages go back to the pool when the cache is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/matrix_view.hpp"
#include "runtime/memory/kv_page_pool.hpp"

namespace cedar::memory {

class global_cache {
 public:
  explicit global_cache(kv_page_pool& pool) : pool_(&pool) {}
  ~global_cache();
  global_cache(global_cache&& other) noexcept;
  global_cache& operator=(global_cache&&) = delete;

  std::uint32_t written() const noexcept { return written_; }

  /// Takes the pages of entries [0, entries), so that appending up to there cannot fail. On
  /// errc::capacity nothing changed. Pages that are not filled go back with truncate().
  result<void> reserve(std::uint32_t entries);

  /// Appends packed entries; `main` and `index_keys` have the same number of rows. On
  /// errc::capacity nothing was appended.
  result<void> append(kernels::matrix_view<const std::byte> main,
                      kernels::matrix_view<const std::byte> index_keys);

  /// Forgets entries from `entries` on and returns pages that hold none.
  void truncate(std::uint32_t entries);

  /// Valid until the cache changes. index < written().
  const std::byte* main_entry(std::uint32_t index) const noexcept {
    const page_layout& layout = pool_->layout();
    return pages_[index / layout.page_entries] +
           (index % layout.page_entries) * layout.main_entry_bytes;
  }
  const std::byte* index_key(std::uint32_t index) const noexcept {
    const page_layout& layout = pool_->layout();
    return pages_[index / layout.page_entries] + layout.page_entries * layout.main_entry_bytes +
           (index % layout.page_entries) * layout.index_entry_bytes;
  }

 private:
  kv_page_pool* pool_;
  std::vector<std::byte*> pages_;
  std::uint32_t written_ = 0;
};

}  // namespace cedar::memory
