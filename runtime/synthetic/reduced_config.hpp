// A smaller model of the same widths: some layers of a configuration, as a configuration.
//
// Every chosen layer keeps its role: whose global KV it reads, whose selection it uses, whether it
// makes or uses candidates, and its Engram module. The draft blocks tap the last layers that were
// chosen, as they do in the original.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/model/config.hpp"

namespace cedar::synthetic {

struct reduction {
  std::vector<std::uint32_t> layers;  ///< of the original, ascending; become 0, 1, ...
  std::uint32_t experts = 0;  ///< routed experts of a layer; of a draft block, no more than it had
  std::uint32_t vocabulary = 0;
  std::uint64_t engram_rows = 0;  ///< least rows of one hash table (one order, one head)
  std::uint32_t engram_classes = 0;  ///< compressed ids that the tokenizer makes
  /// Stands for the tokens that a draft block has yet to find; none: no draft blocks.
  std::optional<token_id> noise_token{};
  std::optional<token_id> image_token{};  ///< stands for images; none: no vision tower
};

/// "0-3,20-21" as {0, 1, 2, 3, 20, 21}. Errors: invalid_argument for anything but numbers and
/// ranges, ascending and without repetition.
result<std::vector<std::uint32_t>> parse_layers(std::string_view text);

/// The text of a config.json. Errors: those of read_config_text() for the original, and for the
/// result if it breaks a rule (a special token outside the vocabulary, fewer experts than a token
/// takes); invalid_argument for layers that the original has not, or that need a layer which is not
/// among them: all of those, a line each; for fewer layers than the draft blocks tap.
result<std::string> reduce_config(const model::config_text& original, const reduction& to);

}  // namespace cedar::synthetic
