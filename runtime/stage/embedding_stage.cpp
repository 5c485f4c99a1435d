#include "runtime/stage/embedding_stage.hpp"

#include <algorithm>

#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

result<flow::row_block> embedding_stage::run(const flow::step_table& table) const {
  const std::size_t rows = table.tokens.size();
  kernels::buffer memory(rows * row_bytes(flow::row_kind::embedded, config_));
  const row_planes_out planes = planes_of(memory, flow::row_kind::embedded, rows, config_);
  for (std::size_t row = 0; row < rows; ++row) {
    const token_id token = table.tokens[row];
    if (token < 0 || static_cast<std::uint32_t>(token) >= config_.vocabulary)
      return fail(errc::invalid_argument, "token " + std::to_string(token) +
                                              " is outside the vocabulary of " +
                                              std::to_string(config_.vocabulary));
    std::ranges::copy(table_.row(static_cast<std::size_t>(token)), planes.streams.row_data(row));
  }
  std::ranges::fill(planes.image_rows, std::uint8_t{0});
  return make_block(flow::row_kind::embedded, table, config_, std::move(memory));
}

}  // namespace cedar::stage
