// `cedar plan`: what a topology means and costs, without running it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "runtime/model/config.hpp"
#include "tools/cedar/commands.hpp"
#include "tools/cedar/pipeline.hpp"
#include "topology/document/document.hpp"
#include "topology/plan/plan.hpp"
#include "topology/plan/render.hpp"

namespace cedar::tools {

namespace {

struct options {
  std::filesystem::path topology;
  std::filesystem::path model;
};

int run(const options& chosen) {
  auto document = topology::read_document(chosen.topology);
  if (!document) {
    fmt::print(stderr, "{}\n", topology::to_string(document.error()));
    return 1;
  }
  if (!chosen.model.empty()) topology::override_model(*document, chosen.model);
  const auto config = model::parse_config(document->model_of(document->client.value));
  if (!config) return report_error(config.error());
  const auto planned = topology::make_plan(*document, *config);
  if (!planned) {
    fmt::print(stderr, "{}\n", topology::to_string(planned.error()));
    return 1;
  }
  fmt::print("{}", topology::render_plan(*planned));
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "plan", "Check a topology and print its placement, edges and bytes; needs no weights");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("topology", chosen->topology, "Topology file")->required();
  command->add_option("-m,--model", chosen->model,
                      "Folder with config.json; overrides the topology's");
  command->callback([chosen, &exit_code] { exit_code = run(*chosen); });
}

}  // namespace cedar::tools
