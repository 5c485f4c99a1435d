// How the tensors of a row_block lie in its payload (flow::row_kind names the planes).
//
// Sizes follow from the configuration alone, so a plan can price an edge before anything runs.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/matrix_view.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/config.hpp"

namespace cedar::stage {

/// Payload bytes of one row (engram_rows: of one module; engram_slots: one table row and its place;
/// shared_kv, index_keys, gathered: one entry).
std::uint32_t row_bytes(flow::row_kind kind, const model::model_config& config) noexcept;

/// Planes of `activation` and, with one stream and no pre-mix, of `embedded`.
template <class Stream, class Mix, class Flag>
struct row_planes {
  kernels::matrix_view<Stream> streams;  ///< [rows, s*d]; embedded: [rows, d]
  kernels::matrix_view<Mix> pre;  ///< [rows, s]; embedded: empty
  std::span<Flag> image_rows;  ///< [rows]
};
using row_planes_view = row_planes<const kernels::bf16, const float, const std::uint8_t>;
using row_planes_out = row_planes<kernels::bf16, float, std::uint8_t>;

/// Planes of a received block. Error malformed: kind, row bytes or payload do not fit the
/// configuration. Valid while the block's payload lives.
result<row_planes_view> view_planes(const flow::row_block& block,
                                    const model::model_config& config);

/// Planes of a buffer of rows * row_bytes(kind) bytes, to be written.
row_planes_out planes_of(kernels::buffer& memory, flow::row_kind kind, std::size_t rows,
                         const model::model_config& config);

/// A block of `kind` of the step, with as many rows as `memory` holds.
flow::row_block make_block(flow::row_kind kind, const flow::step_table& table,
                           const model::model_config& config, kernels::buffer memory);
/// The answer to a request: its names and spans, with as many rows of `kind` as `memory` holds.
flow::row_block answer_block(flow::row_kind kind, const flow::row_block& request,
                             const model::model_config& config, kernels::buffer memory);

}  // namespace cedar::stage
