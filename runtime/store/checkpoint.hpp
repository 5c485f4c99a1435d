// A checkpoint folder: which tensors there are, and their bytes when asked for.
//
// Layout: one `model.safetensors`, or `model.safetensors.index.json` with its shards.
// 1. Opening reads headers only. A tensor's pages are mapped when bytes(), rows() or tensor() asks
//    for it, never earlier, so a process holds no weights of units that are placed elsewhere;
//    touched() and mapped_bytes() prove it.
// 2. Names are the released ones whatever alias the files use (tensor_names.hpp).
// 3. A shard that is not on this host is not an error: a host needs only the files of its units.
// Its
//    tensors are listed by absent(); they have neither shape nor bytes here.
// Whether these are the tensors that a configuration implies is runtime/model/manifest's question.
// Spans and pointers are valid while the checkpoint lives, also after it is moved. Any thread may
// call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/store/safetensors_reader.hpp"
#include "runtime/store/tensor_info.hpp"

namespace cedar::store {

/// A tensor that the index assigns to a file that is not here.
struct absent_tensor {
  std::string name;
  std::string file;
};

class checkpoint {
 public:
  /// Errors: not_found (no such folder, no safetensors in it); io; malformed (a header or the index
  /// is wrong, index and shards disagree, two tensors of one name), naming file and tensor.
  static result<checkpoint> open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const noexcept { return folder_; }
  /// All tensors on this host, ascending by name.
  std::span<const tensor_info> tensors() const noexcept { return tensors_; }
  /// Null if there is none of that name on this host.
  const tensor_info* find(std::string_view name) const;
  /// As find(). Error not_found: there is none.
  result<const tensor_info*> require(std::string_view name) const;
  /// Tensors in files that are not on this host, ascending by name.
  std::span<const absent_tensor> absent() const noexcept { return absent_; }
  /// The files on this host; tensor_info::file is an index into them.
  std::span<const safetensors_reader> files() const noexcept { return files_; }

  /// The tensor's bytes, aligned for its dtype. Errors: io.
  result<std::span<const std::byte>> bytes(const tensor_info& tensor) const;
  /// Rows [first, first + count) along the first dimension, which must lie inside the tensor. Only
  /// their pages are mapped. Errors: io.
  result<std::span<const std::byte>> rows(const tensor_info& tensor, std::uint64_t first,
                                          std::uint64_t count) const;
  /// A typed view by name. Errors: not_found; io.
  result<tensor_view> tensor(std::string_view name) const;

  /// Names of the tensors whose bytes (or some of whose rows) were asked for, ascending.
  std::vector<std::string> touched() const;
  /// Bytes of the pages mapped so far, over all files.
  std::uint64_t mapped_bytes() const;

 private:
  struct tracking {
    std::mutex mutex;
    std::vector<bool> touched;  // by index into tensors_
  };

  checkpoint() = default;
  result<void> add_file(const std::filesystem::path& path);
  result<void> open_sharded(const std::filesystem::path& index);
  result<void> build_index();
  void touch(const tensor_info& tensor) const;

  std::filesystem::path folder_;
  std::vector<safetensors_reader> files_;
  std::vector<tensor_info> tensors_;
  std::vector<absent_tensor> absent_;
  std::unordered_map<std::string_view, std::size_t> by_name_;  // keys live in tensors_
  std::unique_ptr<tracking> tracking_;
};

/// The tensor called `name`, which must have this shape and be stored as T. Errors: not_found;
/// mismatch, naming the tensor, what it is and what is wanted.
template <class T>
result<const tensor_info*> info_of(const checkpoint& from, const std::string& name,
                                   std::span<const std::uint64_t> shape) {
  const result<const tensor_info*> info = from.require(name);
  if (!info) return fail(info.error());
  if (!std::ranges::equal((*info)->shape, shape) || !stores<T>((*info)->dtype))
    return fail(errc::mismatch, "tensor " + name + " is " + std::string(to_string((*info)->dtype)) +
                                    " " + shape_text((*info)->shape) +
                                    ", the configuration wants shape " + shape_text(shape));
  return *info;
}

/// The elements of such a tensor. Errors: those of info_of(); io.
template <class T>
result<std::span<const T>> elements_of(const checkpoint& from, const std::string& name,
                                       std::span<const std::uint64_t> shape) {
  const result<const tensor_info*> info = info_of<T>(from, name, shape);
  if (!info) return fail(info.error());
  const result<std::span<const std::byte>> bytes = from.bytes(**info);
  if (!bytes) return fail(bytes.error());
  return tensor_view{*info, *bytes}.as<T>();
}

/// The elements of its rows [first, first + count), which lie inside it; only they are mapped.
template <class T>
result<std::span<const T>> elements_of_rows(const checkpoint& from, const std::string& name,
                                            std::span<const std::uint64_t> shape,
                                            std::uint64_t first, std::uint64_t count) {
  const result<const tensor_info*> info = info_of<T>(from, name, shape);
  if (!info) return fail(info.error());
  const result<std::span<const std::byte>> bytes = from.rows(**info, first, count);
  if (!bytes) return fail(bytes.error());
  return tensor_view{*info, *bytes}.as<T>();
}

}  // namespace cedar::store
