// Images that come with a chat: from the URLs of its messages to spans of its prompt, by their
// headers alone, so that what cannot be taken is refused before anything is decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/http/chat_request.hpp"
#include "runtime/image/prepare.hpp"
#include "runtime/session/service.hpp"

namespace cedar::http {

/// Of one request.
inline constexpr std::size_t images_max = 16;
/// Of all images of a request together. Decoding takes 3 bytes a pixel, one image at a time.
inline constexpr std::uint64_t image_pixels_max = image::image_limits{}.pixels_max;

/// An image file and its place.
struct sent_image {
  std::vector<std::byte> file;
  std::string path;  ///< the member of the body: "messages[0].content[1].image_url.url"
  std::uint32_t position = 0;  ///< of its span in the prompt
};

/// The chat's images, whose placeholders in `tokens` become spans. Errors: 400, with the path of
/// the image: there is nobody to read it, too many, a URL that is no data URL, a file that is no
/// image, too many pixels, a picture that scaling would erase.
api_result<std::vector<sent_image>> read_images(const chat_ask& ask,
                                                const session::service_limits& limits,
                                                std::vector<token_id>& tokens);

/// `rules`: those of the limits above. Errors: 400, with the path: a file that is damaged behind
/// its header.
api_result<std::vector<flow::prompt_image>> decode(std::span<const sent_image> images,
                                                   const image::image_rules& rules);

}  // namespace cedar::http
