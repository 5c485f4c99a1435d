#include "tests/support/golden_images.hpp"

#include <string>

#include "runtime/session/prompt_images.hpp"
#include "runtime/vision/tower.hpp"

namespace cedar::test {

image_prompt image_prompt_of(const golden_file& file, const model::model_config& config) {
  image_prompt out;
  for (const std::int64_t id : file.integers("tokens"))
    out.ids.push_back(static_cast<token_id>(id));
  for (std::size_t i = 0; file.has("image" + std::to_string(i) + ".rgb"); ++i) {
    const std::string prefix = "image" + std::to_string(i) + ".";
    const auto shape = file.shape(prefix + "rgb");
    image::prepared_image prepared;
    prepared.pixels = {static_cast<std::uint32_t>(shape[1]), static_cast<std::uint32_t>(shape[0])};
    prepared.plan = image::plan_image(prepared.pixels.width, prepared.pixels.height,
                                      vision::rules_of(config.vision));
    const auto values = file.vector<std::uint8_t>(prefix + "rgb");
    prepared.pixels.pixels.assign(values.begin(), values.end());
    out.images.push_back(session::prompt_image_of(prepared));
    out.images.back().position =
        static_cast<std::uint32_t>(file.integers(prefix + "start").front());
  }
  return out;
}

}  // namespace cedar::test
