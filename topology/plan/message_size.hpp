// How many bytes the messages of an edge have, as a formula over the step that they belong to.
//
// The bytes are those that flow::credit_bytes counts: tensor rows plus packed lists, without
// headers. Source of the row sizes: the schedule of DeepSeek-V4.1-Flash; runtime/flow/messages.hpp
// gives the layout of each payload.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/flow/messages.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/index_shard.hpp"
#include "runtime/model/schedule.hpp"

namespace cedar::topology {

/// What is drafted after a step.
struct draft_counts {
  std::uint64_t orders = 0;  ///< requests for which a draft was ordered
  std::uint64_t tokens = 0;  ///< of all drafts together
};

/// By layer: the experts that its router chose for each row of a step that walks it.
using step_routes = std::map<std::uint32_t, std::vector<std::vector<std::uint32_t>>>;

/// By layer with an Engram module: the rows of its table that a step needs, as many as it has rows
/// and the table columns.
using step_addresses = std::map<std::uint32_t, std::vector<std::uint64_t>>;

/// What a step asks of the pipeline, as far as the size of a message depends on it.
struct step_shape {
  std::uint64_t requests = 0;  ///< spans of the step's row table
  std::uint64_t rows = 0;
  std::uint64_t decoder_rows = 0;  ///< rows that walk the decoder
  std::uint64_t wanted = 0;  ///< rows whose logits are wanted
  std::uint64_t earlier_ids = 0;  ///< ids before the spans, for Engram addresses
  std::uint64_t entries = 0;  ///< global entries that the step completes at the edge's owner
  std::uint64_t selected = 0;  ///< entries that the rows choose at one index source
  std::uint64_t tapped = 0;  ///< rows whose taps the drafter takes
  draft_counts drafts{};
  std::uint64_t image_rows = 0;  ///< rows of images
  std::uint64_t routed_rows = 0;  ///< rows that chose an expert of the edge's slice in one layer
  std::uint64_t choices = 0;  ///< experts of the slice that they chose, in total
  std::uint64_t asking_rows = 0;  ///< rows of one source that see an entry of the edge's shard
  std::uint64_t table_rows = 0;  ///< rows of the edge's shard of an Engram table, in total
};

/// Bytes of a message: the sum of its terms, exact. Diagnostics, sampling options and prefixes come
/// on top.
struct message_size {
  std::uint64_t per_request = 0;
  std::uint64_t per_row = 0;
  std::uint64_t per_decoder_row = 0;
  std::uint64_t per_wanted = 0;
  std::uint64_t per_earlier_id = 0;
  std::uint64_t per_entry = 0;
  std::uint64_t per_selected = 0;
  std::uint64_t per_tapped_row = 0;
  std::uint64_t per_order = 0;
  std::uint64_t per_drafted_token = 0;
  std::uint64_t per_image_row = 0;
  std::uint64_t per_routed_row = 0;
  std::uint64_t per_choice = 0;
  std::uint64_t per_asking_row = 0;
  std::uint64_t per_table_row = 0;

  std::uint64_t bytes(const step_shape& step) const noexcept {
    return per_request * step.requests + per_row * step.rows + per_decoder_row * step.decoder_rows +
           per_wanted * step.wanted + per_earlier_id * step.earlier_ids + per_entry * step.entries +
           per_selected * step.selected + per_tapped_row * step.tapped +
           per_order * step.drafts.orders + per_drafted_token * step.drafts.tokens +
           per_image_row * step.image_rows + per_routed_row * step.routed_rows +
           per_choice * step.choices + per_asking_row * step.asking_rows +
           per_table_row * step.table_rows;
  }
  friend bool operator==(const message_size&, const message_size&) = default;
};

/// Row table, token ids, earlier ids for Engram addresses. Without names of taps and sampling.
message_size step_table_size() noexcept;
/// Embedding rows [rows, width] bf16 and image flags [rows] u8.
message_size embedded_size(const model::model_config& config) noexcept;
/// Streams [rows, streams * width] bf16, pre-mix [rows, streams] f32, image flags [rows] u8.
/// `in_decoder`: of the rows that walk the decoder only.
message_size activation_size(const model::model_config& config, bool in_decoder) noexcept;
/// One module's rows: [rows, columns] of head_dim FP8 codes and one scale per 32 of them.
message_size engram_rows_size(const model::model_config& config) noexcept;
/// Collapsed streams [wanted, width] bf16.
message_size head_input_size(const model::model_config& config) noexcept;
/// New main entries of an owner [entries, packed].
message_size shared_kv_size(const model::model_config& config) noexcept;
/// The same entries' index keys.
message_size index_keys_size(const model::model_config& config) noexcept;
/// Positions [rows, top-k] i32: a selection, or the request for its entries.
message_size selection_size(const model::model_config& config, bool in_decoder) noexcept;
/// Blocks [rows, candidate blocks] i32.
message_size candidates_size(const model::model_config& config, bool in_decoder) noexcept;
/// Main entries at the positions that a request names.
message_size gathered_size(const model::model_config& config) noexcept;
/// Proposed tokens; with `whole_logits` also [wanted, vocabulary] f32.
message_size proposal_size(const model::model_config& config, bool whole_logits) noexcept;
/// Commitments.
message_size verdict_size() noexcept;
/// Means of a target layer's streams [tapped rows, width] bf16.
message_size draft_taps_size(const model::model_config& config) noexcept;
/// Orders of drafts.
message_size draft_orders_size() noexcept;
/// Drafts: their tokens, and a confidence for each.
message_size draft_answers_size() noexcept;

/// Embeddings of rows of images [image rows, width] bf16.
message_size image_rows_size(const model::model_config& config) noexcept;

/// Rows for a slice of experts: ids [rows, k] i32, route weights [rows, k] f32, and the rows in FP8
/// with a scale for 32.
message_size expert_rows_size(const model::model_config& config) noexcept;
/// Rows of a shard of an Engram table, and a place i32 for each.
message_size engram_slots_size(const model::model_config& config) noexcept;
/// Outputs of experts [choices, width] bf16.
message_size expert_outputs_size(const model::model_config& config) noexcept;

/// Queries of an indexer: packed heads, and a weight bf16 of each; if `restricted`, candidate
/// blocks [blocks] i32.
message_size query_size(const model::model_config& config, bool restricted) noexcept;
/// Positions [top-k] i32 with scores bf16; if `candidates`, blocks [blocks] alike.
message_size choice_size(const model::model_config& config, bool candidates) noexcept;

/// Cells of an image at most: one row of them, and the span that they make with a newline and two
/// delimiters fits the model's bound and a request of `context` positions. 0: none fits.
std::uint64_t image_cells_max(const model::model_config& config, std::uint64_t context) noexcept;
/// Pixels of a cell, RGB: [downsample * patch, downsample * patch, 3] u8.
std::uint64_t cell_bytes(const model::model_config& config) noexcept;
/// Cells of the images that begin in one step at most: those that lie in it whole have no more than
/// it has rows, and each of its requests has one more at most, which it cuts.
std::uint64_t step_cells_max(const model::model_config& config, std::uint64_t rows,
                             std::uint64_t requests, std::uint64_t context) noexcept;

/// Rows of a request in one step whose taps travel at most: what the drafter's rings hold, a window
/// and what a verdict may take back (runtime/stage).
std::uint64_t tapped_rows_max(const model::model_config& config) noexcept;

/// What `table` asks; without the entries of an owner and what rows choose. Requests less than the
/// look-back away from their start have fewer earlier ids.
step_shape shape_of(const flow::step_table& table, const model::model_config& config) noexcept;
/// Global entries that the table's rows complete at an owner of this ratio; of a shard, if it is
/// given, those that it holds.
std::uint64_t entries_of(const flow::step_table& table, std::uint32_t ratio,
                         const model::index_shard* shard = nullptr) noexcept;
/// Rows of a source that see an entry of `shard`, whose owner has this ratio.
std::uint64_t asking_of(const flow::step_table& table, std::uint32_t ratio,
                        const model::index_shard& shard, bool in_decoder) noexcept;
/// Entries that the table's rows choose at `source`, in total.
std::uint64_t selected_of(const flow::step_table& table, const model::model_config& config,
                          const model::layer_schedule& source, bool in_decoder) noexcept;

/// Most entries that `rows` rows of `requests` requests complete at an owner of this ratio.
std::uint64_t entries_max(std::uint64_t rows, std::uint64_t requests, std::uint32_t ratio) noexcept;

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
/// Bytes that the sampling options of `requests` requests can add to a step table.
std::uint64_t sampling_bytes_max(std::uint64_t requests) noexcept;
/// Bytes that kept prefixes can add to a step table of `requests` requests.
std::uint64_t prefix_bytes_max(std::uint64_t requests) noexcept;
/// Bytes that they can add to any other message of a step: of a span, or of a commitment.
std::uint64_t replay_bytes_max(std::uint64_t requests) noexcept;
/// Bytes that the spans of `table` have more than those without a prefix.
std::uint64_t replay_bytes_of(const flow::step_table& table) noexcept;
/// Bytes of the names of taps, the sampling options and the prefixes in `table`.
std::uint64_t extra_bytes_of(const flow::step_table& table) noexcept;

}  // namespace cedar::topology
