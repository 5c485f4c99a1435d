// How many bytes the messages of an edge have, as a formula over the step that they belong to.
//
// The bytes are those that flow::credit_bytes counts: tensor rows plus packed lists, without
// headers. Source of the row sizes: the schedule of DeepSeek-V4.1-Flash; runtime/flow/messages.hpp
// gives the layout of each payload.
#pragma once

#include <cstdint>

#include "runtime/model/config.hpp"

namespace cedar::topology {

/// What a step asks of the pipeline.
struct step_shape {
  std::uint64_t requests = 0;  ///< spans of the step's row table
  std::uint64_t rows = 0;
  std::uint64_t wanted = 0;  ///< rows whose logits are wanted
};

/// bytes = per_request * requests + per_row * rows + per_wanted * wanted. Exact for every message
/// but the step table, where a request nearer to its start than the Engram look-back has fewer
/// earlier ids.
struct message_size {
  std::uint64_t per_request = 0;
  std::uint64_t per_row = 0;
  std::uint64_t per_wanted = 0;

  std::uint64_t bytes(const step_shape& step) const noexcept {
    return per_request * step.requests + per_row * step.rows + per_wanted * step.wanted;
  }
  friend bool operator==(const message_size&, const message_size&) = default;
};

/// Row table, token ids, earlier ids for Engram addresses. Without names of taps.
message_size step_table_size(const model::model_config& config) noexcept;
/// Embedding rows [rows, width] bf16 and image flags [rows] u8.
message_size embedded_size(const model::model_config& config) noexcept;
/// Streams [rows, streams * width] bf16, pre-mix [rows, streams] f32, image flags [rows] u8.
message_size activation_size(const model::model_config& config) noexcept;
/// One module's rows: [rows, columns] of head_dim FP8 codes and one scale per 32 of them.
message_size engram_rows_size(const model::model_config& config) noexcept;
/// Collapsed streams [wanted, width] bf16.
message_size head_input_size(const model::model_config& config) noexcept;
/// Proposed tokens; with `whole_logits` also [wanted, vocabulary] f32.
message_size proposal_size(const model::model_config& config, bool whole_logits) noexcept;
/// Commitments.
message_size verdict_size() noexcept;

/// Most bytes that one tap can have when a step has `rows` rows and a request `context` positions:
/// the widest intermediate of a row (index scores over the context; Engram keys and values of all
/// streams; queries of all heads) in f32, its name and its shape.
std::uint64_t tap_bytes_max(const model::model_config& config, std::uint64_t rows,
                            std::uint64_t context) noexcept;

/// Most names of taps in one step (some thirty intermediates a layer, 40 layers, rounded up) and
/// the longest such name.
inline constexpr std::uint32_t taps_per_step_max = 2048;
inline constexpr std::uint32_t tap_name_bytes_max = 64;
/// Bytes that names of taps can add to a step table.
std::uint64_t tap_names_bytes_max() noexcept;

}  // namespace cedar::topology
