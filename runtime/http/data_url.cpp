#include "runtime/http/data_url.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace cedar::http {

namespace {

constexpr std::string_view scheme = "data:";
constexpr std::string_view encoding = ";base64";
constexpr std::array<std::string_view, 4> types = {"image/png", "image/jpeg", "image/jpg",
                                                   "image/webp"};
/// Of a URL that an error quotes.
constexpr std::size_t quoted_max = 40;

tl::unexpected<error> invalid(std::string text) {
  return fail(errc::invalid_argument, std::move(text));
}

bool is_base64(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '/';
}

/// The library's decoder is lenient; this is not.
result<std::size_t> check_base64(std::string_view text) {
  if (text.size() > std::numeric_limits<int>::max()) return invalid("too long");
  std::size_t end = text.size();
  while (end > 0 && text.size() - end < 2 && text[end - 1] == '=') --end;
  const auto wrong = std::ranges::find_if_not(text.substr(0, end), is_base64);
  if (const auto at = static_cast<std::size_t>(wrong - text.begin()); at < end)
    return invalid(fmt::format("not base64 at byte {} of the data", at));
  if (text.size() % 4 != 0)
    return invalid(
        fmt::format("base64 of {} characters, which is no multiple of 4: the data is "
                    "cut off or lacks its padding",
                    text.size()));
  return text.size() - end;
}

result<std::vector<std::byte>> decode_base64(std::string_view text) {
  const result<std::size_t> padding = check_base64(text);
  if (!padding) return fail(padding.error());
  std::vector<std::byte> out(text.size() / 4 * 3);
  const int made = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (made < 0 || static_cast<std::size_t>(made) < *padding) return invalid("not base64");
  out.resize(static_cast<std::size_t>(made) - *padding);
  return out;
}

}  // namespace

result<std::vector<std::byte>> read_data_url(std::string_view url) {
  if (url.starts_with("http:") || url.starts_with("https:"))
    return invalid(
        "this server fetches nothing; send the image itself as "
        "data:image/png;base64,... (or jpeg, webp)");
  if (!url.starts_with(scheme))
    return invalid(
        fmt::format("'{}' is no data URL; write data:image/png;base64,... (or jpeg, "
                    "webp)",
                    url.substr(0, quoted_max)));
  const std::size_t comma = std::min(url.find(','), url.size());
  const std::string_view head = url.substr(scheme.size(), comma - scheme.size());
  if (comma == url.size() || !head.ends_with(encoding))
    return invalid("a data URL must have base64 data: data:image/png;base64,...");
  const std::string_view type = head.substr(0, head.find(';'));
  if (std::ranges::find(types, type) == types.end())
    return invalid(fmt::format("data of type '{}'; images are image/png, image/jpeg or image/webp",
                               type.substr(0, quoted_max)));
  return decode_base64(url.substr(comma + 1));
}

}  // namespace cedar::http
