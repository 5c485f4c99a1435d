// Bytes of the list elements of a message as they lie in a frame's payload: little-endian,
// unpadded. Here, because credit counts them; runtime/wire reads and writes them; schemas/README.md
// explains them.
#pragma once

#include <cstddef>

namespace cedar::flow {

inline constexpr std::size_t packed_span_bytes = 8 + 4 + 4 + 4 + 4;  ///< row_span
inline constexpr std::size_t packed_token_bytes = 4;  ///< token_id
inline constexpr std::size_t packed_proposed_token_bytes = 8 + 4 + 4 + 4;  ///< proposed_token
inline constexpr std::size_t packed_commitment_bytes = 8 + 4 + 1;  ///< commitment
/// request_sampling without its biases, and one bias.
inline constexpr std::size_t packed_sampling_bytes =
    8 + 4 + 4 + 4 + 4 + 4 + 4 + 4 + 4 + 8 + 4 + 4 + 4;
inline constexpr std::size_t packed_bias_bytes = 4 + 4;
inline constexpr std::size_t packed_draft_order_bytes = 8 + 4 + 4 + 4;  ///< draft_order
/// draft without its lists, one token and one confidence.
inline constexpr std::size_t packed_draft_bytes = 8 + 4 + 1 + 1;
inline constexpr std::size_t packed_drafted_token_bytes = 4;
inline constexpr std::size_t packed_confidence_bytes = 4;
inline constexpr std::size_t packed_replay_bytes = 4 + 4;  ///< on top, of a span with a prefix
inline constexpr std::size_t packed_kept_bytes = 8 + 4;  ///< on top, of a commitment that keeps one
inline constexpr std::size_t packed_prefix_use_bytes = 8 + 8;  ///< prefix_use
inline constexpr std::size_t packed_prefix_bytes = 8;  ///< prefix_id
inline constexpr std::size_t packed_extent_bytes = 4;  ///< one extent of a shape
inline constexpr std::size_t packed_text_prefix_bytes = 2;  ///< length before a text

}  // namespace cedar::flow
