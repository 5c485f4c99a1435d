#include "runtime/session/prompt_images.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/base/check.hpp"

namespace cedar::session {

namespace {

std::string named(std::size_t index) {
  return "image " + std::to_string(index + 1);
}

flow::image_digest digest_of(const image::prepared_image& prepared) {
  std::vector<std::uint8_t> text;
  for (const std::uint32_t side : {prepared.plan.patch_rows, prepared.plan.patch_columns})
    for (int shift = 0; shift < 32; shift += 8)
      text.push_back(static_cast<std::uint8_t>(side >> shift));
  text.insert(text.end(), prepared.pixels.pixels.begin(), prepared.pixels.pixels.end());
  flow::image_digest out;
  const bool made =
      EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(out.data()), nullptr,
                 EVP_sha256(), nullptr) == 1;
  CEDAR_REQUIRE(made, "SHA-256 of the cryptographic library");
  return out;
}

result<void> check_stray(std::span<const token_id> ids, token_id image_token) {
  if (std::ranges::find(ids, image_token) == ids.end()) return {};
  return fail(errc::invalid_argument, "token " + std::to_string(image_token) +
                                          " stands for an image, of which there is none; leave it "
                                          "out");
}

result<void> check_image(const flow::prompt_image& image, const image::image_rules& rules) {
  const auto plan = image::plan_of_patches(image.patch_rows, image.patch_columns, rules);
  if (!plan || plan->span_tokens() != image.rows_count)
    return fail(errc::invalid_argument, std::to_string(image.patch_rows) + " x " +
                                            std::to_string(image.patch_columns) + " patches in " +
                                            std::to_string(image.rows_count) +
                                            " positions are none of the model's images");
  if (flow::bytes_of(image.pixels).size() != std::size_t{3} * plan->width * plan->height)
    return fail(errc::invalid_argument, "its pixels are not " + std::to_string(plan->width) +
                                            " x " + std::to_string(plan->height));
  return {};
}

}  // namespace

flow::prompt_image prompt_image_of(const image::prepared_image& prepared) {
  const std::vector<std::uint8_t>& pixels = prepared.pixels.pixels;
  kernels::buffer memory = kernels::buffer::uninitialized(pixels.size());
  std::memcpy(memory.data(), pixels.data(), pixels.size());
  flow::prompt_image out;
  out.rows_count = prepared.plan.span_tokens();
  out.patch_rows = prepared.plan.patch_rows;
  out.patch_columns = prepared.plan.patch_columns;
  out.pixels = flow::freeze(std::move(memory));
  out.digest = digest_of(prepared);
  return out;
}

result<std::vector<std::uint32_t>> place_images(std::vector<token_id>& tokens, token_id image_token,
                                                std::span<const std::uint32_t> spans) {
  const auto placeholders = static_cast<std::size_t>(std::ranges::count(tokens, image_token));
  if (placeholders != spans.size())
    return fail(errc::invalid_argument, std::to_string(placeholders) + " places for " +
                                            std::to_string(spans.size()) + " images");
  std::vector<std::uint32_t> positions;
  std::vector<token_id> out;
  for (const token_id token : tokens) {
    if (token != image_token) {
      out.push_back(token);
      continue;
    }
    const std::uint32_t rows = spans[positions.size()];
    positions.push_back(static_cast<std::uint32_t>(out.size()));
    out.insert(out.end(), rows, image_token);
  }
  tokens = std::move(out);
  return positions;
}

result<void> check_images(std::span<const token_id> prompt,
                          std::span<const flow::prompt_image> images, token_id image_token,
                          const std::optional<image::image_rules>& rules) {
  if (!images.empty() && (!rules || image_token < 0))
    return fail(
        errc::invalid_argument,
        "the prompt has images, but nobody here reads images: the model has no vision tower, "
        "or the topology places none; add vision: {device: DEVICE} to its units");
  if (image_token < 0) return {};
  std::size_t seen = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const flow::prompt_image& image = images[i];
    if (const result<void> sane = check_image(image, *rules); !sane)
      return fail(sane.error().with(named(i)));
    if (image.position < seen)
      return fail(errc::invalid_argument, named(i) + " is not behind the one before it");
    if (image.position > prompt.size() || prompt.size() - image.position < image.rows_count)
      return fail(errc::invalid_argument, "the prompt ends inside " + named(i));
    if (const result<void> text =
            check_stray(prompt.subspan(seen, image.position - seen), image_token);
        !text)
      return text;
    const auto span = prompt.subspan(image.position, image.rows_count);
    if (std::ranges::count(span, image_token) != std::ssize(span))
      return fail(errc::invalid_argument, named(i) + " has positions without the image token " +
                                              std::to_string(image_token));
    seen = image.end();
  }
  return check_stray(prompt.subspan(seen), image_token);
}

}  // namespace cedar::session
