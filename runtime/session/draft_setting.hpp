// How many tokens a step verifies of what a drafter proposes, as a person sets it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace cedar::session {

struct draft_setting {
  std::uint32_t tokens = 0;  ///< in each step at most; 0: nobody drafts, unless `automatic`
  bool automatic = false;  ///< as many as pay (draft_policy.hpp), up to what the drafter proposes

  friend bool operator==(const draft_setting&, const draft_setting&) = default;
};

/// "off", "fixed:K", "auto". What draft_setting_of() reads.
std::string to_string(const draft_setting& setting);
/// Errors: invalid_argument, with what may be written.
result<draft_setting> draft_setting_of(std::string_view text);

}  // namespace cedar::session
