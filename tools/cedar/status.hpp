// `cedar status`: what a running server is doing, on one screen.
#pragma once

namespace CLI {
class App;
}

namespace cedar::tools {

/// Adds the subcommand `status` to `app`; it sets `exit_code`, which must outlive the parse.
void add_status(CLI::App& app, int& exit_code);

}  // namespace cedar::tools
