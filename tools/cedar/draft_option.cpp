#include "tools/cedar/draft_option.hpp"

#include <CLI/CLI.hpp>

namespace cedar::tools {

void add_draft_option(CLI::App& command, std::optional<session::draft_setting>& to) {
  command.add_option_function<std::string>(
      "--draft",
      [&to](const std::string& text) {
        const auto setting = session::draft_setting_of(text);
        if (!setting) throw CLI::ValidationError("--draft", text + ": " + setting.error().message);
        to = *setting;
      },
      "off, fixed:K: let the model's drafter propose K tokens a step, or auto: as many as pay; "
      "answers stay the same (default: the topology's, which is auto where it places a drafter; "
      "off in one process)");
}

}  // namespace cedar::tools
