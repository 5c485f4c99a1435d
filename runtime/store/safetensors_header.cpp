#include "runtime/store/safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "runtime/store/json.hpp"

namespace cedar::store {
namespace {

using nlohmann::json;

/// A JSON list of unsigned integers that fit 64 bits.
std::optional<std::vector<std::uint64_t>> unsigned_list(const json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const json& item : value) {
    if (!item.is_number_unsigned()) return std::nullopt;
    numbers.push_back(item.get<std::uint64_t>());
  }
  return numbers;
}

/// One entry of the header; `payload` is the file offset that data_offsets count from.
result<tensor_info> parse_entry(const std::string& name, const json& entry, std::uint64_t payload,
                                std::uint64_t payload_bytes, const std::string& file) {
  const auto wrong = [&](const std::string& what) {
    return fail(errc::malformed, fmt::format("{}: tensor \"{}\": {}", file, name, what));
  };
  if (!entry.is_object()) return wrong("its entry is not an object");
  for (const auto& [key, value] : entry.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      return wrong(fmt::format("unknown field \"{}\"", key));
  if (entry.size() != 3) return wrong("dtype, shape and data_offsets are all required");

  tensor_info tensor;
  tensor.name = name;
  if (!entry["dtype"].is_string()) return wrong("dtype is not a string");
  const auto& dtype_name = entry["dtype"].get_ref<const std::string&>();
  const auto dtype = parse_dtype(dtype_name);
  if (!dtype) return wrong(fmt::format("dtype {} is not supported", dtype_name));
  tensor.dtype = *dtype;

  auto shape = unsigned_list(entry["shape"]);
  if (!shape) return wrong("shape is not a list of sizes");
  tensor.shape = std::move(*shape);
  const auto count = element_count(tensor.shape);
  if (!count || __builtin_mul_overflow(*count, kernels::element_bytes(*dtype), &tensor.bytes))
    return wrong(fmt::format("shape {} overflows", shape_text(tensor.shape)));

  const auto offsets = unsigned_list(entry["data_offsets"]);
  if (!offsets || offsets->size() != 2) return wrong("data_offsets is not a pair of offsets");
  const std::uint64_t begin = (*offsets)[0];
  const std::uint64_t end = (*offsets)[1];
  if (begin > end || end > payload_bytes)
    return wrong(
        fmt::format("data_offsets [{}, {}] leave the payload of {} bytes (file truncated?)", begin,
                    end, payload_bytes));
  if (end - begin != tensor.bytes)
    return wrong(fmt::format("data_offsets span {} bytes, {} {} needs {}", end - begin, dtype_name,
                             shape_text(tensor.shape), tensor.bytes));
  tensor.offset = payload + begin;
  return tensor;
}

/// Tensors, sorted by offset, must cover [payload, file_bytes) exactly.
result<void> check_coverage(const std::vector<tensor_info>& tensors, std::uint64_t payload,
                            std::uint64_t file_bytes, const std::string& file) {
  std::uint64_t next = payload;
  for (const tensor_info& tensor : tensors) {
    if (tensor.offset != next)
      return fail(errc::malformed,
                  fmt::format("{}: tensor \"{}\": {} the one before it at payload byte {}", file,
                              tensor.name, tensor.offset < next ? "overlaps" : "leaves a gap after",
                              std::min(tensor.offset, next) - payload));
    next += tensor.bytes;
  }
  if (next != file_bytes)
    return fail(errc::malformed, fmt::format("{}: {} bytes after the last tensor belong to none",
                                             file, file_bytes - next));
  return {};
}

}  // namespace

result<std::uint64_t> check_header_length(std::uint64_t length, std::uint64_t file_bytes,
                                          const std::string& file) {
  if (file_bytes < header_length_bytes)
    return fail(errc::malformed,
                fmt::format("{}: {} bytes are too few for a safetensors file", file, file_bytes));
  if (length > header_bytes_max)
    return fail(errc::malformed,
                fmt::format("{}: header length {} exceeds {}", file, length, header_bytes_max));
  if (length > file_bytes - header_length_bytes)
    return fail(errc::malformed, fmt::format("{}: header of {} bytes in a file of {} (truncated?)",
                                             file, length, file_bytes));
  return length;
}

result<safetensors_header> parse_safetensors_header(std::string_view text, std::uint64_t file_bytes,
                                                    const std::string& file) {
  if (!text.starts_with('{')) return fail(errc::malformed, file + ": header does not begin with {");
  auto root = parse_json(text, file + ": header");
  if (!root) return fail(root.error());
  if (!root->is_object()) return fail(errc::malformed, file + ": header is not an object");

  safetensors_header header;
  const std::uint64_t payload = header_length_bytes + text.size();
  if (file_bytes < payload) return fail(errc::malformed, file + ": truncated inside its header");
  for (const auto& [name, entry] : root->items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return fail(errc::malformed, file + ": __metadata__ is no object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string())
          return fail(errc::malformed,
                      fmt::format("{}: __metadata__ \"{}\" is not a string", file, key));
        header.metadata.emplace(key, value.get<std::string>());
      }
      continue;
    }
    auto tensor = parse_entry(name, entry, payload, file_bytes - payload, file);
    if (!tensor) return fail(tensor.error());
    header.tensors.push_back(std::move(*tensor));
  }
  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  if (auto covered = check_coverage(header.tensors, payload, file_bytes, file); !covered)
    return fail(covered.error());
  return header;
}

}  // namespace cedar::store
