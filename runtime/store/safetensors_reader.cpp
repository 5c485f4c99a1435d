#include "runtime/store/safetensors_reader.hpp"

#include <fmt/format.h>

#include <array>

#include "runtime/store/safetensors_header.hpp"

namespace cedar::store {
namespace {

std::uint64_t little_endian(std::span<const std::byte, header_length_bytes> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

result<std::string> read_header_text(const mapped_file& file) {
  const std::string name = file.path().string();
  std::array<std::byte, header_length_bytes> length_field{};
  if (file.bytes() >= header_length_bytes)
    if (auto done = file.read(0, length_field); !done) return fail(done.error());
  const auto length = check_header_length(little_endian(length_field), file.bytes(), name);
  if (!length) return fail(length.error());
  std::string text(*length, '\0');
  auto done = file.read(header_length_bytes, std::as_writable_bytes(std::span(text)));
  if (!done) return fail(done.error());
  return text;
}

}  // namespace

result<safetensors_reader> safetensors_reader::open(const std::filesystem::path& path) {
  auto file = mapped_file::open(path);
  if (!file) return fail(file.error());
  const auto text = read_header_text(**file);
  if (!text) return fail(text.error());
  auto header = parse_safetensors_header(*text, (*file)->bytes(), path.string());
  if (!header) return fail(header.error());

  safetensors_reader reader;
  reader.file_ = std::move(*file);
  reader.tensors_ = std::move(header->tensors);
  reader.metadata_ = std::move(header->metadata);
  reader.copies_ = std::make_unique<copies>();
  for (std::size_t i = 0; i < reader.tensors_.size(); ++i)
    reader.index_.emplace(reader.tensors_[i].name, i);
  return reader;
}

const tensor_info* safetensors_reader::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

result<std::span<const std::byte>> safetensors_reader::aligned_copy(
    const tensor_info& tensor) const {
  const std::lock_guard lock(copies_->mutex);
  auto& copy = copies_->by_offset[tensor.offset];
  if (copy.bytes() == 0) {
    kernels::buffer memory(tensor.bytes);
    if (auto done = file_->read(tensor.offset, memory.span()); !done) return fail(done.error());
    copy = std::move(memory);
  }
  return std::span<const std::byte>(copy.data(), copy.bytes());
}

result<std::span<const std::byte>> safetensors_reader::bytes(const tensor_info& tensor) const {
  if (tensor.bytes != 0 && tensor.offset % kernels::element_bytes(tensor.dtype) != 0)
    return aligned_copy(tensor);
  return file_->map(tensor.offset, tensor.bytes);
}

result<std::span<const std::byte>> safetensors_reader::rows(const tensor_info& tensor,
                                                            std::uint64_t first,
                                                            std::uint64_t count) const {
  CEDAR_REQUIRE(
      !tensor.shape.empty() && first <= tensor.shape[0] && count <= tensor.shape[0] - first,
      fmt::format("{}: rows [{}, +{}) of {}", tensor.name, first, count, shape_text(tensor.shape)));
  const std::uint64_t row_bytes = tensor.shape[0] == 0 ? 0 : tensor.bytes / tensor.shape[0];
  if (tensor.offset % kernels::element_bytes(tensor.dtype) != 0) {
    auto whole = bytes(tensor);
    if (!whole) return whole;
    return whole->subspan(first * row_bytes, count * row_bytes);
  }
  return file_->map(tensor.offset + first * row_bytes, count * row_bytes);
}

result<tensor_view> safetensors_reader::tensor(std::string_view name) const {
  const tensor_info* info = find(name);
  if (info == nullptr)
    return fail(errc::not_found, fmt::format("{}: no tensor \"{}\"", path().string(), name));
  auto data = bytes(*info);
  if (!data) return fail(data.error());
  return tensor_view{info, *data};
}

}  // namespace cedar::store
