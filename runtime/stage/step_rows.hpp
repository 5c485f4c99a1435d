// The rows of one step as a stage sees them: spans joined with the state of their requests.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kernels/base/matrix_view.hpp"
#include "kernels/ops/selection.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/stage/sequence_state.hpp"

namespace cedar::stage {

/// One span with its state. Rows [first_row, first_row + span.rows_count) of the step are its rows.
struct span_rows {
  flow::row_span span;
  std::size_t first_row = 0;
  sequence_state* sequence = nullptr;
};

struct step_rows {
  std::vector<span_rows> spans;
  std::vector<std::int32_t> positions;  ///< [n]
  std::vector<std::uint8_t> image_rows;  ///< [n]
  /// Fetched Engram rows by layer: [n, columns * row_bytes].
  std::map<std::uint32_t, kernels::matrix_view<const std::byte>> engram;

  std::size_t count() const noexcept { return positions.size(); }
};

/// Positions of the selected global entries of every row, ascending.
using selection = std::vector<std::vector<std::uint32_t>>;

/// What the index sources of one step chose; lives for the step.
struct step_selections {
  std::map<std::uint32_t, selection> by_source;  ///< index source layer -> [n]
  std::vector<kernels::candidate_pool> candidates;  ///< [n], once the candidate source has run
};

/// Replaces decisions of the model by given ones: a diagnostic for comparing with recorded runs. An
/// entry exists only for the layers it overrides; row i of an entry belongs to row i of the step.
struct selection_overrides {
  std::map<std::uint32_t, selection> positions;
  std::map<std::uint32_t, kernels::matrix_view<const std::int32_t>> experts;
};

}  // namespace cedar::stage
