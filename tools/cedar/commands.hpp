// The subcommands of cedar, one file each. Every function adds its subcommand to `app`; when it was
// chosen, parsing runs it and sets `exit_code`, which must outlive the parse.
#pragma once

namespace CLI {
class App;
}

namespace cedar::tools {

void add_run(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_logits(CLI::App& app, int& exit_code);
void add_make_checkpoint(CLI::App& app, int& exit_code);
void add_node(CLI::App& app, int& exit_code);
void add_serve(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);

}  // namespace cedar::tools
