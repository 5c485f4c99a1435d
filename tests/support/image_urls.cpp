#include "tests/support/image_urls.hpp"

#include <openssl/evp.h>
#include <zlib.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace cedar::test {

std::string image_bytes(const std::string& name) {
  std::ifstream file(CEDAR_TEST_DATA "/image/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("no image " + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string data_url(const std::string& bytes, const std::string& type) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int made = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(made));
  return "data:" + type + ";base64," + text;
}

nlohmann::ordered_json message_with_images(const std::vector<std::string>& urls,
                                           const std::string& text) {
  auto content = nlohmann::ordered_json::array();
  for (const std::string& url : urls)
    content.push_back({{"type", "image_url"}, {"image_url", {{"url", url}}}});
  content.push_back({{"type", "text"}, {"text", text}});
  return {{"role", "user"}, {"content", content}};
}

std::string png_header(std::uint32_t width, std::uint32_t height) {
  const auto number = [](std::uint32_t value) {
    std::string out;
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
    return out;
  };
  const std::string chunk =
      "IHDR" + number(width) + number(height) + std::string("\x08\x02\0\0\0", 5);
  const auto checksum = crc32(0, reinterpret_cast<const unsigned char*>(chunk.data()),
                              static_cast<unsigned>(chunk.size()));
  return "\x89PNG\r\n\x1a\n" + number(13) + chunk + number(static_cast<std::uint32_t>(checksum)) +
         number(100) + "IDAT";
}

}  // namespace cedar::test
