// What a frame's header says, read out of Cap'n Proto but not yet checked against the payload.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"

namespace cedar::wire::internal {

/// In the order of flow::message's alternatives and of the schema's union.
enum class body_kind : std::uint8_t {
  step_table,
  row_block,
  proposal,
  verdict,
  tap,
  credit,
  draft_orders,
  draft_answers,
  image,
};

/// Enumerators are kept as numbers here: a value out of range is the sender's, not ours.
struct body_fields {
  std::uint16_t kind = 0;  ///< of body_kind
  std::uint16_t row_kind = 0;
  std::uint16_t type = 0;
  bool last = false;
  std::uint32_t layer = 0;
  std::uint32_t reader = 0;
  std::uint32_t slice = 0;
  std::uint32_t spans = 0;
  std::uint32_t rows = 0;
  std::uint32_t row_bytes = 0;
  std::uint32_t tokens = 0;
  std::uint32_t lookback = 0;
  std::uint32_t taps = 0;
  std::uint32_t sampling = 0;
  std::uint32_t prefixes = 0;
  std::uint32_t dropped = 0;
  std::uint32_t commitments = 0;
  std::uint32_t drafts = 0;  ///< or orders of drafts
  std::uint32_t extents = 0;
  std::uint32_t messages = 0;
  std::uint64_t bytes = 0;  ///< of logits, of a tap's tensor, of pixels, of a credit
  std::uint64_t request = 0;  ///< of an image, like the next three
  std::uint32_t position = 0;
  std::uint32_t patch_rows = 0;
  std::uint32_t patch_columns = 0;
  bool want_logits = false;
};

struct header_fields {
  std::uint16_t version = 0;
  flow::envelope envelope;
  epoch_id epoch;
  step_id step;
  body_fields body;
};

inline tl::unexpected<error> malformed(const std::string& field, const std::string& what) {
  return fail(errc::malformed, "frame: " + field + ": " + what);
}

/// The message that fields and payload make together. Errors: malformed, naming the field.
result<flow::message> decode_body(const header_fields& fields, kernels::buffer payload);

}  // namespace cedar::wire::internal
