// A regular file opened for reading, of which exactly the asked-for pages are mapped.
//
// 1. Opening maps nothing. The first map() reserves address space for the whole file (no memory, no
//    pages of the file); each map() then maps the pages of its range into that reservation.
//    Neighbouring ranges therefore merge into one kernel mapping, and a checkpoint of 10^5 tensors
//    stays far below the kernel's limit on mappings.
// 2. Mappings are read-only and live until the object is destroyed.
// 3. All functions may be called from any thread.
// A file that another process truncates while it is mapped raises SIGBUS on access: checkpoints
// must be replaced by renaming, as safetensors_writer does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "runtime/base/result.hpp"

namespace cedar::store {

class mapped_file {
 public:
  /// Errors: not_found; io (not a regular file, no permission).
  static result<std::unique_ptr<mapped_file>> open(const std::filesystem::path& path);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Last modification, nanoseconds since 1970.
  std::int64_t modified_ns() const noexcept { return modified_ns_; }

  /// Bytes [offset, offset + count) of the file, which must lie inside it. Errors: io.
  result<std::span<const std::byte>> map(std::uint64_t offset, std::uint64_t count);

  /// Copies bytes [offset, offset + target.size()) without mapping them. Errors: io, also if the
  /// file has become shorter.
  result<void> read(std::uint64_t offset, std::span<std::byte> target) const;

  /// Bytes of the pages mapped so far.
  std::uint64_t mapped_bytes() const;

 private:
  mapped_file(std::filesystem::path path, int descriptor, std::uint64_t bytes,
              std::int64_t modified_ns);
  result<void> reserve();
  result<void> map_pages(std::uint64_t begin, std::uint64_t end);

  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t bytes_;
  std::int64_t modified_ns_;
  mutable std::mutex mutex_;
  std::byte* base_ = nullptr;  // the reservation, once there is one
  std::uint64_t reserved_ = 0;  // its size
  std::map<std::uint64_t, std::uint64_t> mapped_;  // begin -> end of mapped page ranges, disjoint
};

}  // namespace cedar::store
