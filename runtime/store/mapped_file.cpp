#include "runtime/store/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "kernels/base/check.hpp"

namespace cedar::store {
namespace {

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

error system_error(int code, const std::filesystem::path& path, std::string_view call) {
  return {code == ENOENT || code == ENOTDIR ? errc::not_found : errc::io,
          fmt::format("{}: {}: {}", path.string(), call,
                      std::error_code(code, std::generic_category()).message())};
}

}  // namespace

mapped_file::mapped_file(std::filesystem::path path, int descriptor, std::uint64_t bytes,
                         std::int64_t modified_ns)
    : path_(std::move(path)), descriptor_(descriptor), bytes_(bytes), modified_ns_(modified_ns) {}

mapped_file::~mapped_file() {
  if (base_ != nullptr) ::munmap(base_, reserved_);
  ::close(descriptor_);
}

result<std::unique_ptr<mapped_file>> mapped_file::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a FIFO by mistake must not wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail(system_error(errno, path, "open"));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    const int code = errno;
    ::close(descriptor);
    return fail(system_error(code, path, "stat"));
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return fail(errc::io, path.string() + ": not a regular file");
  }
  const std::int64_t modified_ns =
      std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  return std::unique_ptr<mapped_file>(
      new mapped_file(path, descriptor, static_cast<std::uint64_t>(status.st_size), modified_ns));
}

result<void> mapped_file::reserve() {
  if (base_ != nullptr) return {};
  const std::uint64_t size = (bytes_ + page_bytes() - 1) / page_bytes() * page_bytes();
  void* address =
      ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return fail(system_error(errno, path_, "reserve address space"));
  base_ = static_cast<std::byte*>(address);
  reserved_ = size;
  return {};
}

result<void> mapped_file::map_pages(std::uint64_t begin, std::uint64_t end) {
  void* address = ::mmap(base_ + begin, end - begin, PROT_READ, MAP_SHARED | MAP_FIXED, descriptor_,
                         static_cast<off_t>(begin));
  if (address == MAP_FAILED) return fail(system_error(errno, path_, "map"));
  // Join with the ranges that end or begin here, so that the map stays as short as the kernel's.
  auto after = mapped_.lower_bound(begin);
  if (after != mapped_.end() && after->first == end) {
    end = after->second;
    after = mapped_.erase(after);
  }
  if (after != mapped_.begin()) {
    const auto before = std::prev(after);
    if (before->second == begin) {
      before->second = end;
      return {};
    }
  }
  mapped_.emplace(begin, end);
  return {};
}

result<std::span<const std::byte>> mapped_file::map(std::uint64_t offset, std::uint64_t count) {
  CEDAR_REQUIRE(offset <= bytes_ && count <= bytes_ - offset,
                fmt::format("{}: bytes [{}, +{}) of {}", path_.string(), offset, count, bytes_));
  if (count == 0) return std::span<const std::byte>{};
  const std::lock_guard lock(mutex_);
  if (auto reserved = reserve(); !reserved) return fail(reserved.error());
  const std::uint64_t last = (offset + count + page_bytes() - 1) / page_bytes() * page_bytes();
  std::uint64_t next = offset / page_bytes() * page_bytes();
  while (next < last) {  // map the gaps of [next, last) only
    auto range = mapped_.upper_bound(next);
    const std::uint64_t gap_end = range == mapped_.end() ? last : std::min(last, range->first);
    const std::uint64_t covered = range == mapped_.begin() ? 0 : std::prev(range)->second;
    if (covered > next) {
      next = covered;
      continue;
    }
    if (auto done = map_pages(next, gap_end); !done) return fail(done.error());
    next = gap_end;
  }
  return std::span<const std::byte>{base_ + offset, count};
}

result<void> mapped_file::read(std::uint64_t offset, std::span<std::byte> target) const {
  while (!target.empty()) {
    const ssize_t count =
        ::pread(descriptor_, target.data(), target.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(system_error(errno, path_, "read"));
    if (count == 0) return fail(errc::io, path_.string() + ": ended while it was read");
    offset += static_cast<std::uint64_t>(count);
    target = target.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

std::uint64_t mapped_file::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t total = 0;
  for (const auto& [begin, end] : mapped_) total += end - begin;
  return total;
}

}  // namespace cedar::store
