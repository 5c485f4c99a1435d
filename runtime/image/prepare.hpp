// A file that somebody sent, to the pixels that the tower reads: header, plan, decoding, scaling.
#pragma once

#include "runtime/image/decode.hpp"
#include "runtime/image/plan.hpp"

namespace cedar::image {

struct prepared_image {
  image_plan plan;
  rgb_image pixels;  ///< plan.width x plan.height
};

/// The plan alone, from the header: what a span will cost, before anything is decoded. Errors:
/// those of read_header; invalid_argument: a picture so narrow that scaling would leave it no
/// pixel.
result<image_plan> plan_file(std::span<const std::byte> file, const image_rules& rules,
                             const image_limits& limits = {});

/// Errors: those of decode and plan_file.
result<prepared_image> prepare(std::span<const std::byte> file, const image_rules& rules,
                               const image_limits& limits = {});

}  // namespace cedar::image
