// Which positions belong to an image span: those with the image token's id. It stands nowhere but
// in declared images (session::check_images) and the head never proposes it, so ids alone say it
// everywhere: in a step's rows, in what Engram looks back at, in a replay.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/model/config.hpp"

namespace cedar::model {

/// The id of every position of an image span; -1 for a model without a vision tower, where that id
/// is an ordinary one.
inline token_id image_token_of(const model_config& config) noexcept {
  return config.vision.layers > 0 ? config.image_token : -1;
}

/// 1 for each position of an image span, else 0.
inline std::vector<std::uint8_t> image_flags(const model_config& config,
                                             std::span<const token_id> tokens) {
  const token_id image = image_token_of(config);
  std::vector<std::uint8_t> out;
  out.reserve(tokens.size());
  for (const token_id token : tokens) out.push_back(image >= 0 && token == image ? 1 : 0);
  return out;
}

}  // namespace cedar::model
