#include "runtime/store/fingerprint.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <vector>

#include "runtime/store/json.hpp"
#include "runtime/store/safetensors_writer.hpp"
#include "runtime/store/tensor_names.hpp"

namespace cedar::store {
namespace {

constexpr std::size_t read_block_bytes = std::size_t{4} << 20;
constexpr std::chrono::seconds settled_after{2};
constexpr int hashes_version = 1;  // of the .hashes.json format

/// XXH3-128, incremental. Every text is hashed with its length, so that no two lists of texts run
/// together.
class hasher {
 public:
  hasher() { XXH3_128bits_reset(state_.get()); }

  void add(std::span<const std::byte> bytes) {
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
  void add(std::uint64_t number) {
    std::array<std::byte, 8> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>(number >> (8 * i));
    add(bytes);
  }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    add(std::as_bytes(std::span(text)));
  }
  fingerprint digest() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return {hash.high64, hash.low64};
  }

 private:
  struct release {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, release> state_{XXH3_createState()};
};

/// Content hashes of one file, by the name that the file uses.
using content_hashes = std::map<std::string, std::string>;

std::filesystem::path hashes_path(const safetensors_reader& file) {
  return file.path().string() + ".hashes.json";
}

/// The stored hashes, if they are of this very file; anything doubtful counts as not stored.
std::optional<content_hashes> stored_hashes(const safetensors_reader& file) {
  auto opened = mapped_file::open(hashes_path(file));
  if (!opened) return std::nullopt;
  std::string text((*opened)->bytes(), '\0');
  if (!(*opened)->read(0, std::as_writable_bytes(std::span(text)))) return std::nullopt;
  const auto root = parse_json(text, "");
  if (!root || !root->is_object() || !root->contains("tensors") ||
      !(*root)["tensors"].is_object() ||
      root->value("version", nlohmann::json()) != hashes_version ||
      root->value("file_bytes", nlohmann::json()) != file.file().bytes() ||
      root->value("modified_ns", nlohmann::json()) != file.file().modified_ns())
    return std::nullopt;
  content_hashes hashes;
  for (const auto& [name, hash] : (*root)["tensors"].items())
    if (hash.is_string()) hashes.emplace(name, hash.get<std::string>());
  for (const tensor_info& tensor : file.tensors())
    if (!hashes.contains(tensor.name)) return std::nullopt;
  return hashes;
}

/// File systems keep times in steps of up to two seconds, so a file that is younger than that may
/// change once more without a change of its time.
bool is_settled(const safetensors_reader& file) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return now - std::chrono::nanoseconds(file.file().modified_ns()) > settled_after;
}

void store_hashes(const safetensors_reader& file, const content_hashes& hashes) {
  if (!is_settled(file)) return;
  const nlohmann::ordered_json root = {{"version", hashes_version},
                                       {"file_bytes", file.file().bytes()},
                                       {"modified_ns", file.file().modified_ns()},
                                       {"tensors", hashes}};
  const std::string text = root.dump(1) + "\n";
  const std::array parts{std::as_bytes(std::span(text))};
  // A folder that cannot be written costs the next start another pass over the files, no more.
  static_cast<void>(replace_file(hashes_path(file), parts));
}

result<content_hashes> hash_contents(const safetensors_reader& file) {
  std::vector<std::byte> block(read_block_bytes);
  content_hashes hashes;
  for (const tensor_info& tensor : file.tensors()) {
    hasher hash;
    for (std::uint64_t done = 0; done < tensor.bytes;) {
      const std::size_t count =
          static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), tensor.bytes - done));
      const std::span part(block.data(), count);
      if (auto read = file.file().read(tensor.offset + done, part); !read)
        return fail(read.error());
      hash.add(std::span<const std::byte>(part));
      done += count;
    }
    hashes.emplace(tensor.name, to_string(hash.digest()));
  }
  return hashes;
}

void add_description(hasher& hash, const tensor_info& tensor) {
  hash.add(tensor.name);
  hash.add(to_string(tensor.dtype));
  hash.add(std::uint64_t{tensor.shape.size()});
  for (const std::uint64_t dimension : tensor.shape) hash.add(dimension);
}

}  // namespace

std::string to_string(const fingerprint& print) {
  return fmt::format("{:016x}{:016x}", print.high, print.low);
}

fingerprint shape_fingerprint(const checkpoint& tensors, std::string_view config_text) {
  hasher hash;
  hash.add(config_text);
  for (const tensor_info& tensor : tensors.tensors()) add_description(hash, tensor);
  return hash.digest();
}

result<fingerprint> content_fingerprint(const checkpoint& tensors, std::string_view config_text) {
  if (!tensors.absent().empty())
    return fail(errc::not_found,
                fmt::format("{}: {} is not here, its content cannot be hashed",
                            tensors.folder().string(), tensors.absent().front().file));
  // Stored under the names that the files use; aliases must not matter.
  std::map<std::pair<std::uint32_t, std::string>, std::string> by_place;
  for (std::uint32_t i = 0; i < tensors.files().size(); ++i) {
    const safetensors_reader& file = tensors.files()[i];
    auto stored = stored_hashes(file);
    if (!stored) {
      auto computed = hash_contents(file);
      if (!computed) return fail(computed.error());
      store_hashes(file, *computed);
      stored = std::move(*computed);
    }
    for (auto& [name, content] : *stored) by_place[{i, normalized_name(name)}] = content;
  }
  hasher hash;
  hash.add(config_text);
  for (const tensor_info& tensor : tensors.tensors()) {
    add_description(hash, tensor);
    hash.add(by_place.at({tensor.file, tensor.name}));
  }
  return hash.digest();
}

}  // namespace cedar::store
