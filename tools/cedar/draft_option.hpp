// --draft: whether the model's drafter proposes tokens, and how many of them a step verifies.
#pragma once

#include <optional>

#include "runtime/session/draft_setting.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace cedar::tools {

/// Adds --draft to a subcommand. A word that is none of its values is a mistake of the command
/// line.
void add_draft_option(CLI::App& command, std::optional<session::draft_setting>& to);

}  // namespace cedar::tools
