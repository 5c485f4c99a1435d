// Pages of global KV: the only memory of a sequence that grows with its length.
//
// A page holds `page_entries` entries of one owner of one sequence: first all main entries, then
// all index keys. 1. Pages of a pool have one size and are recycled. 2. The pool never holds more
// than its bound; at the bound allocation fails with errc::capacity and nothing is lost. 3. Memory
// is taken from the system for pages of 4 MiB together, when the first of them is needed. Not
// thread-safe: one stage owns a pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "runtime/base/result.hpp"

namespace cedar::memory {

/// Entries of a page: 64 keeps a page of released width at 22,784 bytes and wastes at most 63
/// entries per owner and sequence.
inline constexpr std::uint32_t default_page_entries = 64;

struct page_layout {
  std::uint32_t page_entries = default_page_entries;
  std::size_t main_entry_bytes = 0;
  std::size_t index_entry_bytes = 0;

  std::size_t page_bytes() const noexcept {
    return page_entries * (main_entry_bytes + index_entry_bytes);
  }
};

class kv_page_pool {
 public:
  kv_page_pool(page_layout layout, std::size_t pages_max);
  kv_page_pool(const kv_page_pool&) = delete;
  kv_page_pool& operator=(const kv_page_pool&) = delete;

  const page_layout& layout() const noexcept { return layout_; }
  std::size_t pages_max() const noexcept { return pages_max_; }
  std::size_t pages_in_use() const noexcept { return pages_in_use_; }
  std::size_t bytes_in_use() const noexcept { return pages_in_use_ * layout_.page_bytes(); }

  /// Start of a free page, or errc::capacity. Owned by the caller until release().
  result<std::byte*> allocate();
  void release(std::byte* page);

 private:
  page_layout layout_;
  std::size_t pages_max_;
  std::size_t pages_in_use_ = 0;
  std::vector<kernels::buffer> storage_;
  std::vector<std::byte*> free_;
};

}  // namespace cedar::memory
