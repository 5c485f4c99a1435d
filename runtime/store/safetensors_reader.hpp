// One safetensors file: the checked header, and tensors mapped only when asked for.
//
// 1. open() reads the header and nothing else.
// 2. bytes() maps exactly the pages of the asked-for tensor (or rows). Neighbours on the same page
//    come along; nothing else does.
// 3. A tensor whose offset is no multiple of its element's size (the format does not forbid it) is
//    copied to aligned memory at its first use, so that every view is aligned for its dtype.
// Spans and views are valid while the reader lives, also after it is moved. Any thread may call.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "runtime/base/result.hpp"
#include "runtime/store/mapped_file.hpp"
#include "runtime/store/tensor_info.hpp"

namespace cedar::store {

class safetensors_reader {
 public:
  /// Errors: not_found; io; malformed (message names the file and the tensor).
  static result<safetensors_reader> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const noexcept { return file_->path(); }
  const mapped_file& file() const noexcept { return *file_; }
  /// All tensors, ascending by offset.
  std::span<const tensor_info> tensors() const noexcept { return tensors_; }
  const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  /// Null if there is none of that name.
  const tensor_info* find(std::string_view name) const;

  /// The tensor's bytes. Errors: io.
  result<std::span<const std::byte>> bytes(const tensor_info& tensor) const;
  /// Rows [first, first + count) along the first dimension, which must lie inside the tensor; only
  /// their pages are mapped. Errors: io.
  result<std::span<const std::byte>> rows(const tensor_info& tensor, std::uint64_t first,
                                          std::uint64_t count) const;
  /// A typed view by name. Errors: not_found; io.
  result<tensor_view> tensor(std::string_view name) const;

  /// Bytes of mapped pages (aligned copies are not counted: their pages are read, not mapped).
  std::uint64_t mapped_bytes() const { return file_->mapped_bytes(); }

 private:
  struct copies {
    std::mutex mutex;
    std::map<std::uint64_t, kernels::buffer> by_offset;
  };

  safetensors_reader() = default;
  result<std::span<const std::byte>> aligned_copy(const tensor_info& tensor) const;

  std::unique_ptr<mapped_file> file_;
  std::vector<tensor_info> tensors_;
  std::unordered_map<std::string_view, std::size_t> index_;  // keys live in tensors_
  std::map<std::string, std::string> metadata_;
  std::unique_ptr<copies> copies_;
};

}  // namespace cedar::store
