#include "runtime/vision/span.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"

namespace cedar::vision {

void write_span(const delimiter_weights& delimiters, const image::image_plan& plan,
                matrix_view<const bf16> aligned, matrix_view<bf16> out) {
  CEDAR_REQUIRE(aligned.rows == plan.cells() && out.rows == plan.span_tokens(),
                "a row for every cell, a row for every position");
  std::size_t cell = 0;
  std::size_t row = 0;
  for (const image::span_token token : image::span_layout(plan)) {
    std::span<const bf16> from;
    switch (token) {
      case image::span_token::start:
        from = delimiters.start;
        break;
      case image::span_token::newline:
        from = delimiters.newline;
        break;
      case image::span_token::end:
        from = delimiters.end;
        break;
      case image::span_token::image:
        from = aligned.row(cell++);
        break;
    }
    std::ranges::copy(from, out.row_data(row++));
  }
}

}  // namespace cedar::vision
