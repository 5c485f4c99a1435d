#include "topology/document/document.hpp"

#include <algorithm>
#include <fstream>
#include <system_error>

namespace cedar::topology {

namespace {

// A topology of a thousand stages needs about 100 KiB.
constexpr std::uintmax_t file_bytes_max = 1U << 20U;

reading unreadable(const std::filesystem::path& file, std::string message) {
  return {{}, {{file.string(), 1, 1, std::move(message), "give the path of a topology file"}}};
}

tl::expected<document, std::vector<diagnostic>> without_mistakes(reading read) {
  if (!read.mistakes.empty()) return tl::unexpected(std::move(read.mistakes));
  return std::move(read.value);
}

}  // namespace

std::filesystem::path document::resolve(const std::string& path) const {
  return (directory / path).lexically_normal();
}

std::filesystem::path document::model_of(std::string_view node) const {
  for (const node_entry& entry : nodes)
    if (entry.name.value == node && entry.model_path.given) return resolve(entry.model_path.value);
  return model_path.value.empty() ? std::filesystem::path{} : resolve(model_path.value);
}

diagnostic document::mistake(position where, std::string message, std::string hint) const {
  return {file, where.line, where.column, std::move(message), std::move(hint)};
}

void reading::check_model(std::string_view node) {
  const std::filesystem::path folder = value.model_of(node);
  std::error_code ignored;
  if (folder.empty() || std::filesystem::is_directory(folder, ignored)) return;
  const auto own = std::ranges::find_if(value.nodes, [&](const node_entry& entry) {
    return entry.name.value == node && entry.model_path.given;
  });
  const located<std::string>& path = own == value.nodes.end() ? value.model_path : own->model_path;
  mistakes.push_back(value.mistake(
      path.where,
      "the checkpoint " + in_quotes(path.value) + " is no folder: " +
          printable(std::filesystem::absolute(folder).string()) + " was looked for",
      "a path is relative to the topology file; write where the checkpoint is, or give -m DIR"));
  sort_by_position(mistakes);
}

reading read_file(const std::filesystem::path& file) {
  std::error_code status;
  if (!std::filesystem::is_regular_file(file, status)) {
    return unreadable(file, status ? "cannot read the file: " + status.message()
                                   : "cannot read the file: not a regular file");
  }
  const std::uintmax_t bytes = std::filesystem::file_size(file, status);
  if (status) return unreadable(file, "cannot read the file: " + status.message());
  if (bytes > file_bytes_max) {
    return unreadable(file, "the file has " + std::to_string(bytes) +
                                " bytes; a topology has at most " + std::to_string(file_bytes_max));
  }
  std::string text(static_cast<std::size_t>(bytes), '\0');
  std::ifstream in(file, std::ios::binary);
  if (!in.read(text.data(), static_cast<std::streamsize>(bytes))) {
    return unreadable(file, "cannot read the file: reading failed");
  }
  return read_text(text, file.string());
}

tl::expected<document, std::vector<diagnostic>> parse_document(std::string_view text,
                                                               const std::string& file) {
  return without_mistakes(read_text(text, file));
}

tl::expected<document, std::vector<diagnostic>> read_document(const std::filesystem::path& file) {
  return without_mistakes(read_file(file));
}

void override_model(document& topology, const std::filesystem::path& path) {
  topology.model_path.value = std::filesystem::absolute(path).string();
  topology.model_path.given = true;
  for (node_entry& node : topology.nodes)
    if (node.start.value != "join") node.model_path = {};
}

void override_draft(document& topology, const std::string& setting) {
  topology.draft.value = setting;
  topology.draft.given = true;
}

}  // namespace cedar::topology
