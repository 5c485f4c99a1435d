// Who drafts, and how much.
#pragma once

#include <vector>

#include "runtime/model/config.hpp"
#include "runtime/session/draft_setting.hpp"
#include "topology/document/document.hpp"

namespace cedar::topology::internal {

/// Tokens that the model's drafter proposes at once; 0: the model has none.
std::uint32_t draft_tokens_max(const model::model_config& config) noexcept;

/// What `draft` of the file says, with the tokens of `auto`: as many as the drafter proposes. If it
/// is omitted: `auto` where a drafter is placed, else `off`. Requires: check_draft() found nothing.
session::draft_setting draft_of(const document& topology, const model::model_config& config);

/// A drafter is placed only if the model has draft blocks; `draft` is off, auto or fixed:K, needs a
/// drafter, and asks for no more than it proposes.
void check_draft(const document& topology, const model::model_config& config,
                 std::vector<diagnostic>& out);

}  // namespace cedar::topology::internal
