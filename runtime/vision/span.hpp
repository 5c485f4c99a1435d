// The embeddings of an image span: what takes the place of the token table's rows.
#pragma once

#include "runtime/image/plan.hpp"
#include "runtime/vision/weights.hpp"

namespace cedar::vision {

/// Rows of `plan`'s span, in order (image::span_layout): the learned delimiters, and aligned
/// [cells, d] in reading order. out [plan.span_tokens(), d].
void write_span(const delimiter_weights& delimiters, const image::image_plan& plan,
                matrix_view<const bf16> aligned, matrix_view<bf16> out);

}  // namespace cedar::vision
