// Images in prompts: from an encoded picture and its placeholder to a declared span.
//
// Positions of images are known by the image token's id alone (model::image_token_of), so that id
// may stand nowhere else: check_images() sees to it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/prompt_image.hpp"
#include "runtime/image/prepare.hpp"

namespace cedar::session {

/// `position` is left open, for place_images(). Pixels are shared by copies.
flow::prompt_image prompt_image_of(const image::prepared_image& prepared);

/// Replaces image token number i of `tokens`, which stands for image i, by a span of spans[i] image
/// tokens; returns where the spans begin. Error: invalid_argument: not one token for every span.
result<std::vector<std::uint32_t>> place_images(std::vector<token_id>& tokens, token_id image_token,
                                                std::span<const std::uint32_t> spans);

/// Whether `images` are those of `prompt`: in order, apart, each over image tokens only, as large
/// as `rules` plan it, with all its pixels, and no image token anywhere else. `image_token` -1: no
/// id stands for an image. `rules` nothing: nobody here reads images. Errors: invalid_argument,
/// naming the image by its place.
result<void> check_images(std::span<const token_id> prompt,
                          std::span<const flow::prompt_image> images, token_id image_token,
                          const std::optional<image::image_rules>& rules);

}  // namespace cedar::session
