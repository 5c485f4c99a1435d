// The rows of one step as a stage sees them: spans joined with the state of their requests.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

/// Main entries that an owner elsewhere sent for the selection of one index source.
struct gathered_entries {
  std::uint32_t source = 0;  ///< the index source
  flow::payload_ref payload;  ///< [entries, bytes], row after row in the order of the selection
  std::vector<std::size_t> first;  ///< [n]: the first entry of each row
  std::size_t entry_bytes = 0;

  const std::byte* entry(std::size_t row, std::size_t index) const {
    return payload->data() + (first[row] + index) * entry_bytes;
  }
};

/// What the index sources of one step chose; lives for the step.
struct step_selections {
  std::map<std::uint32_t, selection> by_source;  ///< index source layer -> [n]
  std::vector<kernels::candidate_pool> candidates;  ///< [n], once the candidate source has run
  /// Of the latest index source only: layers of a group follow each other.
  std::optional<gathered_entries> gathered;
  /// Index keys [entries, bytes] that the owner at hand made for indexers, span after span.
  std::vector<std::byte> new_keys;
};

/// Replaces decisions of the model by given ones: a diagnostic for comparing with recorded runs. An
/// entry exists only for the layers it overrides; row i of an entry belongs to row i of the step.
struct selection_overrides {
  std::map<std::uint32_t, selection> positions;
  std::map<std::uint32_t, kernels::matrix_view<const std::int32_t>> experts;
};

}  // namespace cedar::stage
