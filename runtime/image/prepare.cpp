#include "runtime/image/prepare.hpp"

#include <fmt/format.h>

#include "runtime/image/internal/fit.hpp"
#include "runtime/image/resample.hpp"

namespace cedar::image {

result<image_plan> plan_file(std::span<const std::byte> file, const image_rules& rules,
                             const image_limits& limits) {
  const result<image_header> header = read_header(file, limits);
  if (!header) return fail(header.error());
  const image_plan plan = plan_image(header->width, header->height, rules);
  const internal::fitted inside =
      internal::fit(header->width, header->height, plan.width, plan.height);
  if (inside.width == 0 || inside.height == 0)
    return fail(errc::invalid_argument,
                fmt::format("the image of {} x {} pixels is too narrow to be scaled to {} x {}; "
                            "crop it",
                            header->width, header->height, plan.width, plan.height));
  return plan;
}

result<prepared_image> prepare(std::span<const std::byte> file, const image_rules& rules,
                               const image_limits& limits) {
  const result<image_plan> plan = plan_file(file, rules, limits);
  if (!plan) return fail(plan.error());
  const result<rgb_image> picture = decode(file, limits);
  if (!picture) return fail(picture.error());
  result<rgb_image> scaled = pad_to(*picture, plan->width, plan->height);
  if (!scaled) return fail(scaled.error());
  return prepared_image{*plan, std::move(*scaled)};
}

}  // namespace cedar::image
