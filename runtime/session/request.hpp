// What somebody asks for, and what comes back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/flow/prompt_image.hpp"

namespace cedar::session {

/// How much of a prompt walks the decoder.
enum class prefill_mode : std::uint8_t {
  exact,  ///< every row walks every layer
  bounded,  ///< of the prompt only its last `window` rows walk the decoder, as if it began there
  halo,  ///< like bounded, with so many rows more (halo_rows) that every bit is that of `exact`
};

std::string_view to_string(prefill_mode mode) noexcept;
/// Every mode's name.
inline constexpr std::string_view prefill_mode_names[] = {"exact", "bounded", "halo"};
/// The mode of that name, if there is one.
std::optional<prefill_mode> prefill_mode_of(std::string_view name) noexcept;

/// A generation over token ids. Text is the gateway's business.
struct generation_request {
  std::vector<token_id> prompt;  ///< at least one id
  /// Of the prompt, in order; every image token of the prompt is in the span of one.
  std::vector<flow::prompt_image> images;
  prefill_mode mode = prefill_mode::exact;
  std::uint32_t new_tokens_max = 0;  ///< generated tokens at most; 0: only the prompt is run
  bool ignore_eos = false;  ///< go on past the end-of-sequence token
  /// Ids to feed after the prompt, one step each, whatever the model would choose (teacher
  /// forcing). Generation ends with the last of them; new_tokens_max and the end of sequence do not
  /// apply.
  std::vector<token_id> forced;
  /// The last rows of the prompt whose logits are wanted; at least 1 is computed, and none of a row
  /// that does not walk the decoder.
  std::uint32_t prompt_logits = 1;
  flow::sampling_options sampling;  ///< of every row; whoever asks draws a missing seed
  bool want_logits = false;  ///< deliver logit rows with the events
  std::vector<std::string> taps;  ///< names of intermediates to deliver
};

enum class finish_reason : std::uint8_t {
  none,  ///< not finished
  stop,  ///< the model chose the end of sequence
  length,  ///< new_tokens_max, the forced ids, or the context are used up
};

std::string_view to_string(finish_reason reason) noexcept;

/// One row whose logits were wanted.
struct row_event {
  request_id request;
  std::uint32_t position = 0;  ///< of the row
  bool in_prompt = false;  ///< the row and its successor are both prompt rows: `token` is not used
  token_id token = 0;  ///< the model's choice for position + 1
  float log_probability = 0;
  finish_reason finish = finish_reason::none;  ///< set on a request's last event
  std::span<const float> logits;  ///< [vocabulary] or empty; valid while the proposal lives
};

/// Numbers of one finished request.
struct usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t image_tokens = 0;  ///< of them, positions of images
  std::uint32_t completion_tokens = 0;
  prefill_mode mode = prefill_mode::exact;
  /// Of the prompt, positions that a kept prefix knew; and of them, those whose global KV was taken
  /// from it. 0, if the replay that the mode asks for would have been all of them.
  std::uint32_t matched_tokens = 0;
  std::uint32_t cached_tokens = 0;
  std::uint32_t replayed_rows = 0;  ///< computed again for the windows before the end of the prefix
  std::uint32_t encoder_rows = 0;  ///< computed; recomputed rows count again
  std::uint32_t decoder_rows = 0;  ///< of them, those that walked the decoder too
  std::uint32_t preemptions = 0;  ///< times that its KV was given to others, and computed again
  std::uint32_t drafted_tokens = 0;  ///< that were verified
  std::uint32_t accepted_tokens = 0;  ///< of them, those that the model chose too
};

}  // namespace cedar::session
