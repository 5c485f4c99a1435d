// The values that move between the parts of a pipeline: plain structs, known to wire, stage,
// session and actors alike. schemas/README.md says who sends what to whom in which order.
//
// 1. A message is immutable once sent; its tensor bytes are a payload_ref, never copied in a
// process.
// 2. Every message names its step and its epoch; a receiver joins by step, never by arrival.
// 3. Row tables are in step order: a row_block's rows are the rows of its spans, one after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/base/dtype.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/flow/draft.hpp"
#include "runtime/flow/payload.hpp"
#include "runtime/flow/prompt_image.hpp"
#include "runtime/flow/sampling.hpp"

namespace cedar::flow {

/// What the drafter, if there is one, takes of a span: taps of rows that walk the decoder.
enum class tap_use : std::uint8_t {
  rows,  ///< of the span's rows, which continue what it knows
  window,  ///< of the last `window` rows of the request up to the span's end: it begins anew there
  none,  ///< none: it forgets the request
};

/// Consecutive positions of one request in a step.
struct row_span {
  request_id request;
  std::uint32_t first_position = 0;
  std::uint32_t rows_count = 0;
  /// Rows [logits_from, rows_count) of the span go through the head; == rows_count: none.
  std::uint32_t logits_from = 0;
  /// First position that walks the decoder: 0 in mode `exact`. No decoder layer sees a window entry
  /// before it. Wanted rows walk the decoder.
  std::uint32_t decoder_begin = 0;
  /// The request's first row: 0, or where the replay of a prefix begins. No layer sees a window
  /// entry before it.
  std::uint32_t begin = 0;
  /// The global entries of positions [0, stored) are a prefix's: rows before it, which are replayed
  /// for their windows, make none. A multiple of the least common multiple of the owners' ratios.
  std::uint32_t stored = 0;
  tap_use taps = tap_use::rows;

  /// The span has the first row of its request.
  bool begins() const noexcept { return first_position == begin; }
  std::uint32_t logits_count() const noexcept { return rows_count - logits_from; }
  /// Rows [decoder_from, rows_count) of the span walk the decoder.
  std::uint32_t decoder_from() const noexcept {
    return std::min(decoder_begin > first_position ? decoder_begin - first_position : 0,
                    rows_count);
  }
  std::uint32_t decoder_count() const noexcept { return rows_count - decoder_from(); }
  /// Rows before the span's end whose taps the drafter takes, if its windows have `window` rows and
  /// it keeps `kept` of a longer span.
  std::uint32_t tapped_count(std::uint32_t window, std::uint32_t kept) const noexcept {
    if (taps == tap_use::none) return 0;
    if (taps == tap_use::rows) return std::min(decoder_count(), kept);
    const std::uint32_t end = first_position + rows_count;
    return std::min(end - std::min(decoder_begin, end), window);
  }
  /// The first global entry that the span's rows may complete at an owner of this ratio.
  std::uint32_t first_entry(std::uint32_t ratio) const noexcept {
    return std::max(first_position, stored) / ratio;
  }
  /// Global entries that the span's rows complete at an owner of this ratio.
  std::uint32_t entries_count(std::uint32_t ratio) const noexcept {
    return std::max(first_position + rows_count, stored) / ratio - first_entry(ratio);
  }
  friend bool operator==(const row_span&, const row_span&) = default;
};

/// A request begins with the global KV of a prefix; its span says with how much of it (`stored`).
struct prefix_use {
  request_id request;
  prefix_id prefix;

  friend bool operator==(const prefix_use&, const prefix_use&) = default;
};

/// Prefixes that one step table drops at most.
inline constexpr std::uint32_t prefixes_dropped_max = 1024;

/// What one step computes. Scheduler -> every actor of the pipeline, first message of a step.
struct step_table {
  step_id step;
  epoch_id epoch;
  std::vector<row_span> spans;
  std::vector<token_id> tokens;  ///< [rows], in span order
  /// For each span the ids before its first row, oldest first: min(first_position, look-back) each,
  /// concatenated. Engram addresses need them.
  std::vector<token_id> lookback;
  bool want_logits = false;  ///< proposals carry whole logit rows (diagnostics)
  std::vector<std::string> taps;  ///< names of intermediates to send back (diagnostics)
  /// How tokens of the requests that begin in this step are chosen; without penalties also of those
  /// whose taps begin anew, for the drafter. Requests without an entry get the arg max.
  std::vector<request_sampling> sampling;
  std::vector<prefix_use> prefixes{};  ///< of requests that begin in this step
  /// Prefixes that nobody begins with any more: holders of state free them before the step's rows.
  std::vector<prefix_id> dropped{};

  std::uint32_t rows_count() const noexcept {
    std::uint32_t rows = 0;
    for (const row_span& span : spans) rows += span.rows_count;
    return rows;
  }
  std::uint32_t decoder_count() const noexcept {
    std::uint32_t rows = 0;
    for (const row_span& span : spans) rows += span.decoder_count();
    return rows;
  }
  std::uint32_t logits_count() const noexcept {
    std::uint32_t rows = 0;
    for (const row_span& span : spans) rows += span.logits_count();
    return rows;
  }
};

enum class row_kind : std::uint8_t {
  embedded,  ///< embedding -> first stage: [rows, d] bf16, then image flags [rows] u8
  activation,  ///< stage -> stage: streams [rows, s*d] bf16, pre-mix [rows, s] f32, image flags
               ///< [rows] u8; inside the decoder only the rows that walk it
  engram_rows,  ///< engram -> stage: one module's table rows [rows, columns * row_bytes], FP8 +
                ///< scales
  head_input,  ///< last stage -> head: collapsed streams [wanted rows, d] bf16
  shared_kv,  ///< owner -> stage with a reader: the step's new main entries [entries, bytes]
  index_keys,  ///< owner -> stage with an index source, or shard of the owner's index: the new
               ///< entries' keys [entries, bytes]; to a shard only those that it holds, if any
  selection,  ///< index source -> stage with a Reuse layer: positions [rows, top-k] i32, -1 padded
  candidates,  ///< candidate source -> stage with a user: blocks [rows, blocks] i32, -1 padded
  gather_request,  ///< stage with a reader -> owner: positions [rows, top-k] i32, -1 padded; once
                   ///< an index group, while the step runs
  gathered,  ///< owner -> the stage that asked: main entries [positions that are not -1, bytes]
  draft_taps,  ///< stage -> drafter: means of a target layer's streams [stage::tapped_rows(), d]
               ///< bf16; not of a step without such rows
  image_rows,  ///< vision -> embedding: [the step's rows of images, d] bf16; only of steps that
               ///< have such rows
  expert_rows,  ///< stage -> slice of experts, while the step runs: the rows that chose some of the
                ///< slice in one layer: ids [rows, k] i32, -1 padded, route weights [rows, k] f32,
                ///< then the rows, FP8: codes [rows, d] u8, scales [rows, d/32] u8
  expert_outputs,  ///< slice of experts -> the stage that asked: [choices, d] bf16, by ascending
                   ///< expert, then in the order of the rows
  index_query,  ///< stage with an index source -> shard of its owner's index, while the step runs:
                ///< the rows that see an entry of the shard: head weights [rows, index heads] bf16,
                ///< queries [rows, index heads * bytes]
  pool_query,  ///< the same of a source that is restricted to candidates, after those of their
               ///< blocks that the shard holds [rows, blocks] i32, -1 padded
  index_choice,  ///< shard -> the stage that asked: the best entries of each row: positions
                 ///< [rows, top-k] i32, -1 padded, then their scores [rows, top-k] bf16
  pool_choice,  ///< the same for the candidate source, with the best blocks of each row: positions,
                ///< blocks [rows, blocks] i32, -1 padded, then the scores of both
  engram_slots,  ///< shard of a module's table -> stage: of the step's [rows * columns] table rows,
                 ///< those that the shard holds: places among them [n] i32, ascending, then
                 ///< [n, row_bytes]
};

/// Asked while a step runs, or the answer to it: not an input of the step.
constexpr bool is_request(row_kind kind) noexcept {
  return kind == row_kind::gather_request || kind == row_kind::expert_rows ||
         kind == row_kind::index_query || kind == row_kind::pool_query;
}
constexpr bool is_reply(row_kind kind) noexcept {
  return kind == row_kind::gathered || kind == row_kind::expert_outputs ||
         kind == row_kind::index_choice || kind == row_kind::pool_choice;
}

/// Tensor rows of one step on one edge. The payload's layout follows from the kind, planes in the
/// order given above, without padding.
struct row_block {
  row_kind kind = row_kind::activation;
  step_id step;
  epoch_id epoch;
  /// engram_rows, engram_slots: the layer whose module this is. selection, candidates: the layer
  /// that chose. shared_kv, index_keys, gather_request, gathered: the owner. draft_taps: the target
  /// layer. expert_rows, expert_outputs: the layer whose experts they are. Queries and choices: the
  /// index source. Else 0.
  std::uint32_t layer = 0;
  std::uint32_t reader = 0;  ///< requests and replies: first layer of the stage that asks
  /// expert_rows, expert_outputs: number of the slice that is asked. Queries and choices,
  /// index_keys for a shard, engram_slots: number of the shard.
  std::uint32_t slice = 0;
  std::vector<row_span> spans;
  std::uint32_t rows_count = 0;
  std::uint32_t row_bytes = 0;  ///< payload bytes = rows_count * row_bytes
  payload_ref payload;
};

/// The head's suggestion for one wanted row.
struct proposed_token {
  request_id request;
  std::uint32_t position = 0;  ///< of the row; the token would stand at position + 1
  token_id token = 0;
  float log_probability = 0;  ///< natural logarithm, under the unfiltered softmax

  friend bool operator==(const proposed_token&, const proposed_token&) = default;
};

/// Head -> scheduler, last message of a step. payload: logits [wanted rows, vocabulary] f32 if the
/// step asked for them, else empty.
struct proposal {
  step_id step;
  epoch_id epoch;
  std::vector<proposed_token> tokens;
  payload_ref logits;
};

/// How far a request's state is committed.
struct commitment {
  request_id request;
  std::uint32_t committed = 0;  ///< rows [0, committed) stand; later ones are rolled back
  bool finished = false;  ///< the request is over: free its state
  /// Of a request that is over: its global KV of positions [0, kept_positions) stays, under this
  /// name.
  prefix_id kept{};
  std::uint32_t kept_positions = 0;

  friend bool operator==(const commitment&, const commitment&) = default;
};

/// Scheduler -> every holder of state.
struct verdict {
  step_id step;
  epoch_id epoch;
  std::vector<commitment> commitments;
};

/// Scheduler -> drafter, after the verdict of the step, if there is anything to draft.
struct draft_orders {
  step_id step;  ///< whose verdict made the requests what they are
  epoch_id epoch;
  std::vector<draft_order> orders;  ///< of different requests
};

/// Drafter -> scheduler: the answer to the orders of a step, one draft for each.
struct draft_answers {
  step_id step;
  epoch_id epoch;
  std::vector<draft> drafts;
};

/// Scheduler -> vision: an image whose first row is in the step. Leaves before the step's table,
/// and may arrive after it. Its digest does not travel: the tower reads the pixels.
struct step_image {
  step_id step;
  epoch_id epoch;
  request_image image;
};

/// A named intermediate, for diagnostics. Stage or head -> scheduler. After its last tap of a step
/// that asks for taps, each of them sends one with `last`, without name and elements: how the
/// scheduler knows that it has all of them.
struct tap {
  step_id step;
  epoch_id epoch;
  bool last = false;
  std::string name;  ///< e.g. "L3.attn.out"
  kernels::dtype type = kernels::dtype::f32;
  std::vector<std::uint32_t> shape;
  payload_ref payload;
};

/// Consumer -> producer of an edge: room for more.
struct credit {
  epoch_id epoch;  ///< credits of an older epoch are void
  std::uint32_t messages = 0;
  std::uint64_t bytes = 0;
};

/// What travels on data edges. (credit travels the other way.)
using message = std::variant<step_table, row_block, proposal, verdict, tap, credit, draft_orders,
                             draft_answers, step_image>;

/// What accompanies every message on an edge.
struct envelope {
  edge_id edge;
  std::uint64_t sequence = 0;  ///< from 0 per edge and epoch, no gaps; credits: own count
  std::uint64_t fingerprint = 0;  ///< of the model, shortened to 64 bits
};

/// Bytes of a message's variable lists, as runtime/wire packs them.
std::uint64_t list_bytes(const message& value) noexcept;

/// Payload bytes that a message occupies on an edge, for credit: tensor payload plus variable lists
/// as runtime/wire packs them. The same number on both sides of an edge.
std::uint64_t credit_bytes(const message& value) noexcept;

epoch_id epoch_of(const message& value) noexcept;

/// "step_table", "activation", ...: for texts and traces.
std::string_view kind_of(const message& value) noexcept;

}  // namespace cedar::flow
