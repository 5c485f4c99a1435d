#include "runtime/store/safetensors_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <system_error>

#include "kernels/base/check.hpp"
#include "runtime/store/safetensors_header.hpp"

namespace cedar::store {
namespace {

result<void> write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(errc::io, std::error_code(errno, std::generic_category()).message());
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

/// Indices of the tensors, largest element first, otherwise as given.
std::vector<std::size_t> file_order(std::span<const tensor_source> tensors) {
  std::vector<std::size_t> order(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return kernels::element_bytes(tensors[a].dtype) > kernels::element_bytes(tensors[b].dtype);
  });
  return order;
}

std::string header_text(std::span<const tensor_source> tensors, std::span<const std::size_t> order,
                        const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const std::size_t i : order) {
    const tensor_source& tensor = tensors[i];
    const auto count = element_count(tensor.shape);
    CEDAR_REQUIRE(count && *count * kernels::element_bytes(tensor.dtype) == tensor.bytes.size(),
                  fmt::format("{}: {} bytes for shape {}", tensor.name, tensor.bytes.size(),
                              shape_text(tensor.shape)));
    CEDAR_REQUIRE(!header.contains(tensor.name), "two tensors named " + tensor.name);
    header[tensor.name] = {{"dtype", to_string(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

result<void> replace_file(const std::filesystem::path& path,
                          std::span<const std::span<const std::byte>> parts,
                          const std::stop_token& stop) {
  const auto problem = [&](std::string_view what) {
    return fail(errc::io, fmt::format("{}: {}", path.string(), what));
  };
  std::error_code ignored;
  const auto there = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
    return problem("is there already, and no ordinary file; name another");
  std::string temporary = path.string() + ".XXXXXX";
  const int descriptor = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0)
    return problem("create: " + std::error_code(errno, std::generic_category()).message());
  result<void> written;
  const auto look = [&] {
    if (written && stop.stop_requested()) written = fail(errc::cancelled, "interrupted");
  };
  for (const auto& part : parts) {
    look();
    if (written) written = write_all(descriptor, part);
  }
  // mkostemp makes the file private; a result file has ordinary permissions.
  ::fchmod(descriptor, 0644);
  if (written && ::fsync(descriptor) != 0)
    written = fail(errc::io, std::error_code(errno, std::generic_category()).message());
  ::close(descriptor);
  look();
  if (written && std::rename(temporary.c_str(), path.c_str()) != 0)
    written = fail(errc::io, std::error_code(errno, std::generic_category()).message());
  if (!written) {
    ::unlink(temporary.c_str());
    if (written.error().code == errc::cancelled) return written;
    return problem("write: " + written.error().message);
  }
  return {};
}

result<void> write_safetensors(const std::filesystem::path& path,
                               std::span<const tensor_source> tensors,
                               const std::map<std::string, std::string>& metadata,
                               const std::stop_token& stop) {
  const std::vector<std::size_t> order = file_order(tensors);
  const std::string header = header_text(tensors, order, metadata);
  std::array<std::byte, header_length_bytes> length_field{};
  for (std::size_t i = 0; i < length_field.size(); ++i)
    length_field[i] = static_cast<std::byte>(header.size() >> (8 * i));
  std::vector<std::span<const std::byte>> parts{length_field, std::as_bytes(std::span(header))};
  for (const std::size_t i : order) parts.push_back(tensors[i].bytes);
  return replace_file(path, parts, stop);
}

}  // namespace cedar::store
