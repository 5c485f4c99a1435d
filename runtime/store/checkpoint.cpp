#include "runtime/store/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/store/json.hpp"
#include "runtime/store/tensor_names.hpp"

namespace cedar::store {
namespace {

constexpr std::string_view single_file = "model.safetensors";
constexpr std::string_view index_file = "model.safetensors.index.json";

/// Shard file name -> the tensors that the index assigns to it, as they are spelled there.
using shard_map = std::map<std::string, std::set<std::string>>;

result<shard_map> parse_index(std::string_view text, const std::string& file) {
  const auto root = parse_json(text, file);
  if (!root) return fail(root.error());
  const auto wrong = [&](const std::string& what) {
    return fail(errc::malformed, file + ": " + what);
  };
  if (!root->is_object() || !root->contains("weight_map") || !(*root)["weight_map"].is_object())
    return wrong("no object \"weight_map\"");
  shard_map shards;
  for (const auto& [tensor, shard] : (*root)["weight_map"].items()) {
    if (!shard.is_string()) return wrong(fmt::format("tensor \"{}\": no file name", tensor));
    const auto& name = shard.get_ref<const std::string&>();
    // A plain name: the index must not lead out of its folder.
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos)
      return wrong(fmt::format("tensor \"{}\": \"{}\" is not a file name", tensor, name));
    shards[name].insert(tensor);
  }
  return shards;
}

/// The shard must hold exactly the tensors that the index assigns to it.
result<void> check_shard(const safetensors_reader& shard, const std::set<std::string>& indexed) {
  for (const std::string& name : indexed)
    if (shard.find(name) == nullptr)
      return fail(errc::malformed, fmt::format("{}: tensor \"{}\": the index places it here, the "
                                               "file has none of that name",
                                               shard.path().string(), name));
  for (const tensor_info& tensor : shard.tensors())
    if (!indexed.contains(tensor.name))
      return fail(errc::malformed,
                  fmt::format("{}: tensor \"{}\": the index does not place it here",
                              shard.path().string(), tensor.name));
  return {};
}

result<std::string> read_text(const std::filesystem::path& path) {
  auto file = mapped_file::open(path);
  if (!file) return fail(file.error());
  std::string text((*file)->bytes(), '\0');
  if (auto done = (*file)->read(0, std::as_writable_bytes(std::span(text))); !done)
    return fail(done.error());
  return text;
}

}  // namespace

result<void> checkpoint::add_file(const std::filesystem::path& path) {
  auto reader = safetensors_reader::open(path);
  if (!reader) return fail(reader.error());
  for (tensor_info tensor : reader->tensors()) {
    tensor.name = normalized_name(tensor.name);
    tensor.file = static_cast<std::uint32_t>(files_.size());
    tensors_.push_back(std::move(tensor));
  }
  files_.push_back(std::move(*reader));
  return {};
}

result<void> checkpoint::open_sharded(const std::filesystem::path& index) {
  const auto text = read_text(index);
  if (!text) return fail(text.error());
  const auto shards = parse_index(*text, index.string());
  if (!shards) return fail(shards.error());
  for (const auto& [name, indexed] : *shards) {
    std::error_code unused;
    if (!std::filesystem::exists(folder_ / name, unused)) {
      for (const std::string& tensor : indexed) absent_.push_back({normalized_name(tensor), name});
      continue;
    }
    if (auto added = add_file(folder_ / name); !added) return added;
    if (auto same = check_shard(files_.back(), indexed); !same) return same;
  }
  return {};
}

result<void> checkpoint::build_index() {
  std::sort(tensors_.begin(), tensors_.end(),
            [](const tensor_info& a, const tensor_info& b) { return a.name < b.name; });
  std::sort(absent_.begin(), absent_.end(),
            [](const absent_tensor& a, const absent_tensor& b) { return a.name < b.name; });
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (!by_name_.emplace(tensors_[i].name, i).second)
      return fail(errc::malformed, fmt::format("{}: two tensors are named \"{}\"", folder_.string(),
                                               tensors_[i].name));
  tracking_ = std::make_unique<tracking>();
  tracking_->touched.resize(tensors_.size());
  return {};
}

result<checkpoint> checkpoint::open(const std::filesystem::path& folder) {
  checkpoint opened;
  opened.folder_ = folder;
  std::error_code unused;
  const bool sharded = std::filesystem::exists(folder / index_file, unused);
  const bool single = std::filesystem::exists(folder / single_file, unused);
  if (sharded && single)
    return fail(errc::mismatch, fmt::format("{}: holds both {} and {}; remove the one that is not "
                                            "meant",
                                            folder.string(), single_file, index_file));
  if (!sharded && !single)
    return fail(errc::not_found,
                fmt::format("{}: neither {} nor {}", folder.string(), single_file, index_file));
  auto read =
      sharded ? opened.open_sharded(folder / index_file) : opened.add_file(folder / single_file);
  if (read) read = opened.build_index();
  if (!read) return fail(read.error());
  return opened;
}

const tensor_info* checkpoint::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void checkpoint::touch(const tensor_info& tensor) const {
  const auto found = by_name_.find(tensor.name);
  CEDAR_REQUIRE(found != by_name_.end() && &tensors_[found->second] == &tensor,
                tensor.name + " is not a tensor of " + folder_.string());
  const std::lock_guard lock(tracking_->mutex);
  tracking_->touched[found->second] = true;
}

result<std::span<const std::byte>> checkpoint::bytes(const tensor_info& tensor) const {
  touch(tensor);
  return files_[tensor.file].bytes(tensor);
}

result<std::span<const std::byte>> checkpoint::rows(const tensor_info& tensor, std::uint64_t first,
                                                    std::uint64_t count) const {
  touch(tensor);
  return files_[tensor.file].rows(tensor, first, count);
}

result<const tensor_info*> checkpoint::require(std::string_view name) const {
  const tensor_info* info = find(name);
  if (info == nullptr)
    return fail(errc::not_found, fmt::format("{}: no tensor \"{}\"", folder_.string(), name));
  return info;
}

result<tensor_view> checkpoint::tensor(std::string_view name) const {
  const auto info = require(name);
  if (!info) return fail(info.error());
  auto data = bytes(**info);
  if (!data) return fail(data.error());
  return tensor_view{*info, *data};
}

std::vector<std::string> checkpoint::touched() const {
  const std::lock_guard lock(tracking_->mutex);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (tracking_->touched[i]) names.push_back(tensors_[i].name);
  return names;
}

std::uint64_t checkpoint::mapped_bytes() const {
  std::uint64_t total = 0;
  for (const safetensors_reader& file : files_) total += file.mapped_bytes();
  return total;
}

}  // namespace cedar::store
