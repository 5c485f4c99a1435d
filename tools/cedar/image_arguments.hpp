// Images on a command line.
#pragma once

#include <filesystem>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/session/prompt_images.hpp"
#include "runtime/session/service.hpp"
#include "runtime/text/chat.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace cedar::tools {

/// Adds --image FILE, which may be given several times.
void add_image_option(CLI::App& command, std::vector<std::filesystem::path>& to);

/// The files, decoded. Errors, with the file's name: not_found, those of image::prepare;
/// invalid_argument: nobody here reads images.
result<std::vector<flow::prompt_image>> read_image_files(
    const std::vector<std::filesystem::path>& files, const session::service_limits& limits);

/// A user's turn: the images in their order, then the text, joined by blank lines.
text::chat_message turn_with_images(const std::vector<std::filesystem::path>& files,
                                    const std::string& text);

/// Makes the placeholders among `tokens` the spans of `images`, which learn their positions.
result<void> place(std::vector<token_id>& tokens, std::vector<flow::prompt_image>& images,
                   token_id image_token);

}  // namespace cedar::tools
