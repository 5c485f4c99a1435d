// Memory that a placed part holds for requests, as its allocators count it.
#pragma once

#include <cstdint>

namespace cedar {

/// Bytes.
struct cache_bytes {
  std::uint64_t pages = 0;  ///< global KV, of requests and kept prefixes: whole pages
  std::uint64_t kept = 0;  ///< of them, pages that kept prefixes hold
  std::uint64_t rings = 0;  ///< of running requests: windows, pending rows, drafts

  std::uint64_t total() const noexcept { return pages + rings; }
  friend bool operator==(const cache_bytes&, const cache_bytes&) = default;
};

}  // namespace cedar
