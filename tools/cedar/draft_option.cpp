#include "tools/cedar/draft_option.hpp"

#include <CLI/CLI.hpp>

namespace cedar::tools {

CLI::Option* add_draft_option(CLI::App& command, std::optional<session::draft_setting>& to) {
  return command.add_option_function<std::string>(
      "--draft",
      [&to](const std::string& text) {
        const auto setting = session::draft_setting_of(text);
        if (!setting) throw CLI::ValidationError("--draft", text + ": " + setting.error().message);
        to = *setting;
      },
      "off (default), or fixed:K: let the model's drafter propose K tokens a step; answers stay "
      "the "
      "same");
}

}  // namespace cedar::tools
