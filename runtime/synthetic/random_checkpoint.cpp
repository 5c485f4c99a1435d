#include "runtime/synthetic/random_checkpoint.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "runtime/model/config.hpp"
#include "runtime/model/manifest.hpp"
#include "runtime/store/safetensors_writer.hpp"
#include "runtime/synthetic/random_tensor.hpp"

namespace cedar::synthetic {
namespace {

namespace fs = std::filesystem;
using tensors = std::span<const model::expected_tensor>;

/// Consecutive tensors, one group a file.
std::vector<tensors> split(tensors all, std::uint64_t bytes_max) {
  std::vector<tensors> out;
  std::size_t first = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > first && bytes + all[i].bytes() > bytes_max) {
      out.push_back(all.subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += all[i].bytes();
  }
  out.push_back(all.subspan(first));
  return out;
}

std::uint64_t bytes_of(tensors group) {
  std::uint64_t bytes = 0;
  for (const model::expected_tensor& tensor : group) bytes += tensor.bytes();
  return bytes;
}

/// A folder that is being filled. What was written goes away again unless keep() is called.
class new_folder {
 public:
  static result<new_folder> make(const fs::path& path) {
    std::error_code failed;
    const bool there = fs::exists(path, failed);
    if (there && !fs::is_directory(path, failed))
      return fail(errc::refused, path.string() + " is not a folder");
    if (there && !fs::is_empty(path, failed))
      return fail(errc::refused, path.string() + " is not empty: give a new folder");
    if (!there) fs::create_directories(path, failed);
    if (failed) return fail(errc::io, path.string() + ": " + failed.message());
    return new_folder(path, !there);
  }
  new_folder(new_folder&& other) noexcept
      : path_(std::move(other.path_)),
        files_(std::exchange(other.files_, {})),
        made_(std::exchange(other.made_, false)) {}
  new_folder& operator=(new_folder&&) = delete;
  ~new_folder() {
    std::error_code ignored;
    for (const fs::path& file : files_) fs::remove(file, ignored);
    if (made_) fs::remove(path_, ignored);
  }

  result<void> check_room(std::uint64_t bytes) const {
    std::error_code failed;
    const fs::space_info room = fs::space(path_, failed);
    if (failed || room.available >= bytes) return {};
    return fail(errc::capacity,
                fmt::format("{}: {} bytes of weights do not fit, {} bytes are free on that disk",
                            path_.string(), bytes, room.available));
  }
  /// `name` is about to be written; returns its path.
  const fs::path& add(const std::string& name) {
    files_.push_back(path_ / name);
    return files_.back();
  }
  result<void> write(const std::string& name, std::string_view text) {
    const std::span<const std::byte> part = std::as_bytes(std::span(text));
    return store::replace_file(add(name), {&part, 1});
  }
  /// Bytes of all files.
  std::uint64_t keep() {
    std::uint64_t bytes = 0;
    std::error_code failed;
    for (const fs::path& file : files_) bytes += fs::file_size(file, failed);
    files_.clear();
    made_ = false;
    return bytes;
  }

 private:
  new_folder(fs::path path, bool made) : path_(std::move(path)), made_(made) {}

  fs::path path_;
  std::vector<fs::path> files_;
  bool made_;
};

result<void> write_group(const fs::path& path, tensors group, std::uint64_t seed,
                         const std::stop_token& stop) {
  std::vector<std::byte> bytes(bytes_of(group));
  std::vector<store::tensor_source> sources;
  std::span<std::byte> rest(bytes);
  for (const model::expected_tensor& tensor : group) {
    if (stop.stop_requested()) return fail(errc::cancelled, "interrupted");
    const std::span<std::byte> own = rest.first(tensor.bytes());
    rest = rest.subspan(own.size());
    fill_random(tensor, seed, own);
    sources.push_back({tensor.name, tensor.dtype, tensor.shape, own});
  }
  return store::write_safetensors(path, sources, {{"format", "pt"}}, stop);
}

result<void> write_weights(new_folder& folder, const std::vector<tensors>& groups,
                           std::uint64_t seed, const std::stop_token& stop) {
  if (groups.size() == 1)
    return write_group(folder.add("model.safetensors"), groups[0], seed, stop);
  nlohmann::json index;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, groups.size());
    if (const auto done = write_group(folder.add(name), groups[i], seed, stop); !done) return done;
    for (const model::expected_tensor& tensor : groups[i]) index["weight_map"][tensor.name] = name;
    total += bytes_of(groups[i]);
  }
  index["metadata"]["total_size"] = total;
  return folder.write("model.safetensors.index.json", index.dump(1) + "\n");
}

}  // namespace

result<written_checkpoint> write_random_checkpoint(const fs::path& folder,
                                                   const checkpoint_contents& contents,
                                                   const std::stop_token& stop) {
  const model::config_reading reading = model::read_config_text({contents.config, "config.json"});
  if (!reading.config)
    return fail(reading.code, fmt::format("{}", fmt::join(reading.errors, "\n")));
  auto filled = new_folder::make(folder);
  if (!filled) return fail(filled.error());
  const std::vector<model::expected_tensor> all = model::manifest(*reading.config);
  if (const auto fits = filled->check_room(bytes_of(all)); !fits) return fail(fits.error());

  const std::vector<tensors> groups = split(all, contents.file_bytes_max);
  result<void> written = write_weights(*filled, groups, contents.seed, stop);
  if (written && !contents.tokenizer.empty())
    written = filled->write("tokenizer.json", contents.tokenizer);
  if (written) written = filled->write("config.json", contents.config);
  if (!written) return fail(written.error());
  return written_checkpoint{all.size(), groups.size(), filled->keep()};
}

}  // namespace cedar::synthetic
