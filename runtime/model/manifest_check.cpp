#include <fmt/format.h>

#include <unordered_set>

#include "runtime/model/manifest.hpp"

namespace cedar::model {
namespace {

constexpr std::size_t listed_max = 20;  // of one kind, in a message

using store::shape_text;

std::string described(const expected_tensor& tensor) {
  return fmt::format("{} ({} {})", tensor.name, to_string(tensor.dtype), shape_text(tensor.shape));
}

void compare(const expected_tensor& expected, const store::tensor_info& found,
             const std::string& file, manifest_check& differences) {
  if (found.dtype != expected.dtype)
    differences.mistyped.push_back(fmt::format("{} is {} in {}, the configuration implies {}",
                                               expected.name, to_string(found.dtype), file,
                                               to_string(expected.dtype)));
  if (found.shape != expected.shape)
    differences.misshaped.push_back(fmt::format("{} is {} in {}, the configuration implies {}",
                                                expected.name, shape_text(found.shape), file,
                                                shape_text(expected.shape)));
}

void list(std::string& text, std::string_view title, const std::vector<std::string>& entries) {
  for (std::size_t i = 0; i < entries.size() && i < listed_max; ++i)
    text += fmt::format("\n  {}: {}", title, entries[i]);
  if (entries.size() > listed_max)
    text += fmt::format("\n  {}: {} more", title, entries.size() - listed_max);
}

}  // namespace

bool manifest_check::ok() const noexcept {
  return missing.empty() && extra.empty() && misshaped.empty() && mistyped.empty() &&
         not_here.empty();
}

result<void> manifest_check::outcome(const std::string& name) const {
  if (ok()) return {};
  std::string text = name + ": the tensors are not those of the configuration:";
  list(text, "missing", missing);
  list(text, "extra", extra);
  list(text, "shape", misshaped);
  list(text, "dtype", mistyped);
  list(text, "not on this host", not_here);
  const bool only_missing = extra.empty() && misshaped.empty() && mistyped.empty();
  return fail(only_missing ? errc::not_found : errc::mismatch, std::move(text));
}

manifest_check check(std::span<const expected_tensor> expected, const store::checkpoint& found,
                     const placement& placed) {
  manifest_check differences;
  std::unordered_map<std::string_view, std::string_view> elsewhere;  // tensor -> file
  for (const store::absent_tensor& tensor : found.absent())
    elsewhere.emplace(tensor.name, tensor.file);

  std::unordered_set<std::string_view> names;
  std::vector<expected_tensor> unread;
  for (const expected_tensor& tensor : expected) {
    names.insert(tensor.name);
    const store::tensor_info* info = found.find(tensor.name);
    if (info != nullptr) {
      compare(tensor, *info, found.files()[info->file].path().filename().string(), differences);
      if (!placed(tensor)) unread.push_back(tensor);
    } else if (const auto file = elsewhere.find(tensor.name); file == elsewhere.end()) {
      differences.missing.push_back(described(tensor));
    } else if (placed(tensor)) {
      differences.not_here.push_back(fmt::format("{} in {}", tensor.name, file->second));
    }
  }
  differences.not_placed = totals(unread);

  for (const store::tensor_info& tensor : found.tensors())
    if (!names.contains(tensor.name))
      differences.extra.push_back(fmt::format(
          "{} in {}", tensor.name, found.files()[tensor.file].path().filename().string()));
  for (const store::absent_tensor& tensor : found.absent())
    if (!names.contains(tensor.name))
      differences.extra.push_back(fmt::format("{} in {}", tensor.name, tensor.file));
  return differences;
}

}  // namespace cedar::model
