#include "runtime/stage/embedding_stage.hpp"

#include <algorithm>

#include "runtime/model/image_tokens.hpp"
#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

result<flow::row_block> embedding_stage::run(
    const flow::step_table& table, kernels::matrix_view<const kernels::bf16> images) const {
  const std::size_t rows = table.tokens.size();
  kernels::buffer memory(rows * row_bytes(flow::row_kind::embedded, config_));
  const row_planes_out planes = planes_of(memory, flow::row_kind::embedded, rows, config_);
  const std::vector<std::uint8_t> flags = model::image_flags(config_, table.tokens);
  const auto image_rows = static_cast<std::size_t>(std::ranges::count(flags, 1));
  if (images.rows != image_rows || (image_rows > 0 && images.cols != config_.width))
    return fail(errc::mismatch, "step " + std::to_string(table.step.value) + ": " +
                                    std::to_string(image_rows) + " rows of images, but " +
                                    std::to_string(images.rows) + " embeddings of width " +
                                    std::to_string(images.cols));
  std::size_t image_row = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const token_id token = table.tokens[row];
    if (token < 0 || static_cast<std::uint32_t>(token) >= config_.vocabulary)
      return fail(errc::invalid_argument, "token " + std::to_string(token) +
                                              " is outside the vocabulary of " +
                                              std::to_string(config_.vocabulary));
    const auto from =
        flags[row] != 0 ? images.row(image_row++) : table_.row(static_cast<std::size_t>(token));
    std::ranges::copy(from, planes.streams.row_data(row));
  }
  std::ranges::copy(flags, planes.image_rows.begin());
  return make_block(flow::row_kind::embedded, table, config_, std::move(memory));
}

result<flow::row_block> embedding_stage::run(const flow::step_table& table,
                                             const flow::row_block& images) const {
  const auto bytes = flow::bytes_of(images.payload);
  if (images.kind != flow::row_kind::image_rows || images.spans != table.spans ||
      images.row_bytes != row_bytes(flow::row_kind::image_rows, config_) ||
      bytes.size() < std::size_t{images.rows_count} * images.row_bytes)
    return fail(errc::malformed, "step " + std::to_string(table.step.value) +
                                     ": rows of images are not those of the step");
  return run(table, kernels::matrix_view<const kernels::bf16>{
                        reinterpret_cast<const kernels::bf16*>(bytes.data()), images.rows_count,
                        config_.width});
}

bool embedding_stage::has_images(const flow::step_table& table) const {
  const token_id image = model::image_token_of(config_);
  return image >= 0 && std::ranges::find(table.tokens, image) != table.tokens.end();
}

}  // namespace cedar::stage
