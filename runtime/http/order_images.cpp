#include "runtime/http/order_images.hpp"

#include <fmt/format.h>

#include "runtime/http/data_url.hpp"
#include "runtime/session/prompt_images.hpp"

namespace cedar::http {

namespace {

tl::unexpected<api_error> refused(const std::string& path, const std::string& why) {
  return tl::unexpected(bad_request(path + ": " + why, path));
}

}  // namespace

api_result<std::vector<sent_image>> read_images(const chat_ask& ask,
                                                const session::service_limits& limits,
                                                std::vector<token_id>& tokens) {
  const auto urls = text::images_of(ask.messages, ask.frame);
  std::vector<sent_image> out;
  if (urls.empty()) return out;
  if (!limits.images)
    return refused(urls.front()->path,
                   "this server reads no images: its model has no vision tower, or its topology "
                   "places none; add vision: {device: DEVICE} to its units");
  if (urls.size() > images_max)
    return refused(
        urls[images_max]->path,
        fmt::format("{} images in a request; at most {} are taken", urls.size(), images_max));
  std::uint64_t pixels_left = image_pixels_max;
  std::vector<std::uint32_t> spans;
  for (const text::content_image* url : urls) {
    auto file = read_data_url(url->url);
    if (!file) return refused(url->path, file.error().message);
    image::image_limits within;
    within.pixels_max = pixels_left;
    const auto header = image::read_header(*file, within);
    if (!header) return refused(url->path, header.error().message);
    pixels_left -= std::uint64_t{header->width} * header->height;
    const auto plan = image::plan_file(*file, *limits.images);
    if (!plan) return refused(url->path, plan.error().message);
    spans.push_back(plan->span_tokens());
    out.push_back({std::move(*file), url->path, 0});
  }
  const auto positions = session::place_images(tokens, limits.image_token, spans);
  if (!positions) return tl::unexpected(bad_request(positions.error().message, "messages"));
  for (std::size_t i = 0; i < out.size(); ++i) out[i].position = (*positions)[i];
  return out;
}

api_result<std::vector<flow::prompt_image>> decode(std::span<const sent_image> images,
                                                   const image::image_rules& rules) {
  std::vector<flow::prompt_image> out;
  for (const sent_image& sent : images) {
    const auto prepared = image::prepare(sent.file, rules);
    if (!prepared) return refused(sent.path, prepared.error().message);
    out.push_back(session::prompt_image_of(*prepared));
    out.back().position = sent.position;
  }
  return out;
}

}  // namespace cedar::http
