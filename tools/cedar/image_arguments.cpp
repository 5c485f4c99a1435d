#include "tools/cedar/image_arguments.hpp"

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>

namespace cedar::tools {

namespace {

constexpr std::string_view between_blocks = "\n\n";

result<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path))
    return fail(errc::not_found, "cannot read it");
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

result<flow::prompt_image> read_image(const std::filesystem::path& path,
                                      const image::image_rules& rules) {
  const result<std::string> bytes = read_file(path);
  if (!bytes) return fail(bytes.error());
  const auto prepared = image::prepare(std::as_bytes(std::span(*bytes)), rules);
  if (!prepared) return fail(prepared.error());
  return session::prompt_image_of(*prepared);
}

}  // namespace

void add_image_option(CLI::App& command, std::vector<std::filesystem::path>& to) {
  command
      .add_option("--image", to,
                  "PNG, JPEG or WebP file that the prompt is about; several are taken in their "
                  "order. The prompt is then a user's turn in a chat")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

result<std::vector<flow::prompt_image>> read_image_files(
    const std::vector<std::filesystem::path>& files, const session::service_limits& limits) {
  std::vector<flow::prompt_image> out;
  if (!files.empty() && !limits.images)
    return fail(errc::invalid_argument,
                "--image: nobody here reads images: the model has no vision tower, or the topology "
                "places none; add vision: {device: DEVICE} to its units");
  for (const std::filesystem::path& path : files) {
    auto image = read_image(path, *limits.images);
    if (!image) return fail(image.error().with(path.string()));
    out.push_back(std::move(*image));
  }
  return out;
}

text::chat_message turn_with_images(const std::vector<std::filesystem::path>& files,
                                    const std::string& text) {
  text::chat_message out;
  for (const std::filesystem::path& path : files) {
    out.images.push_back({out.content.size(), path.string(), "--image " + path.string()});
    out.content += between_blocks;
  }
  out.content += text;
  return out;
}

result<void> place(std::vector<token_id>& tokens, std::vector<flow::prompt_image>& images,
                   token_id image_token) {
  if (images.empty()) return {};
  std::vector<std::uint32_t> spans;
  for (const flow::prompt_image& image : images) spans.push_back(image.rows_count);
  const auto positions = session::place_images(tokens, image_token, spans);
  if (!positions) return fail(positions.error());
  for (std::size_t i = 0; i < images.size(); ++i) images[i].position = (*positions)[i];
  return {};
}

}  // namespace cedar::tools
