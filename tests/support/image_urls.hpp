// Images as chats send them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cedar::test {

/// The bytes of a file of tests/data/image.
std::string image_bytes(const std::string& name);
/// "data:image/png;base64,...", whatever the bytes are.
std::string data_url(const std::string& bytes, const std::string& type = "image/png");

/// A user's message: the URLs as images, then the text.
nlohmann::ordered_json message_with_images(const std::vector<std::string>& urls,
                                           const std::string& text);

/// A PNG file whose header declares this size, and which ends where its pixels should begin.
std::string png_header(std::uint32_t width, std::uint32_t height);

}  // namespace cedar::test
