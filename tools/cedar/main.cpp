// cedar: one program, with subcommands; the same binary is every node of a cluster.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "runtime/transport/ucx/hangup.hpp"
#include "tools/cedar/commands.hpp"
#include "tools/cedar/devices.hpp"
#include "tools/cedar/inspect.hpp"
#include "tools/cedar/status.hpp"

int main(int argc, char** argv) {
  cedar::transport::ucx::give_back_hangup();
  CLI::App app("cedar: serves DeepSeek-V4.1-Flash as a dataflow of actors", "cedar");
  app.require_subcommand(1);
  app.set_version_flag("--version", CEDAR_VERSION);
  int exit_code = 0;
  cedar::tools::add_run(app, exit_code);
  cedar::tools::add_serve(app, exit_code);
  cedar::tools::add_status(app, exit_code);
  cedar::tools::add_logits(app, exit_code);
  cedar::tools::add_inspect(app, exit_code);
  cedar::tools::add_plan(app, exit_code);
  cedar::tools::add_devices(app, exit_code);
  cedar::tools::add_node(app, exit_code);
  cedar::tools::add_make_checkpoint(app, exit_code);
  cedar::tools::add_bench(app, exit_code);
  cedar::tools::add_eval(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    return app.exit(wrong) == 0 ? 0 : 2;
  } catch (const std::exception& defect) {
    fmt::print(stderr, "cedar: defect: {}\n", defect.what());
    return 70;
  }
  return exit_code;
}
