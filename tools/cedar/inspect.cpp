#include "tools/cedar/inspect.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>
#include <set>

#include "runtime/model/engram_hash.hpp"
#include "runtime/store/checkpoint.hpp"
#include "runtime/store/fingerprint.hpp"
#include "tools/cedar/inspect_placement.hpp"

namespace cedar::tools {
namespace {

weights_inspection inspect_weights(const store::checkpoint& found, const inspection& what) {
  weights_inspection weights;
  weights.files = found.files().size();
  std::set<std::string_view> absent;
  for (const store::absent_tensor& tensor : found.absent()) absent.insert(tensor.file);
  weights.files_absent = absent.size();
  // Inspection places nothing: files of other hosts may be absent.
  weights.differences =
      model::check(what.tensors, found, [](const model::expected_tensor&) { return false; });
  weights.fingerprint =
      to_string(store::shape_fingerprint(found, model::canonical_text(what.config)));
  return weights;
}

/// What `options` ask for beyond the checkpoint itself.
result<void> add_asked(inspection& what, const inspect_options& options) {
  const std::uint32_t positions = options.fewer_positions
                                      ? std::min(options.cache_positions, what.config.max_positions)
                                      : options.cache_positions;
  if (positions > what.config.max_positions)
    return fail(errc::invalid_argument,
                fmt::format("--context {} is beyond the {} positions of the model", positions,
                            what.config.max_positions));
  what.list_tensors = options.tensors;
  what.cache_positions = positions;
  if (positions > 0)
    what.cache = stage::cache_of_sequence(what.config, model::schedule(what.config), positions);
  if (options.topology.empty()) return {};
  auto placed = place(options.topology, what.config, what.tensors);
  if (!placed) return fail(placed.error());
  what.placed = std::make_unique<const placement_inspection>(*std::move(placed));
  return {};
}

}  // namespace

inspection::inspection() = default;
inspection::inspection(inspection&&) noexcept = default;
inspection::~inspection() = default;

result<inspection> inspect(const std::filesystem::path& path) {
  model::config_reading reading = model::read_config(path);
  if (!reading.config) {
    std::string text;
    for (const std::string& problem : reading.errors) text += (text.empty() ? "" : "\n") + problem;
    return fail(reading.code, std::move(text));
  }
  inspection what;
  what.path = path;
  what.config = *std::move(reading.config);
  what.warnings = std::move(reading.warnings);
  if (const auto tables = model::make_engram_tables(what.config); !tables)
    return fail(tables.error().with(path.string()));
  what.tensors = model::manifest(what.config);
  if (!std::filesystem::is_directory(path)) return what;

  const auto found = store::checkpoint::open(path);
  if (found)
    what.weights = inspect_weights(*found, what);
  else if (found.error().code != errc::not_found)
    return fail(found.error());
  return what;
}

int run_inspect(const std::filesystem::path& path, const inspect_options& options,
                std::ostream& out, std::ostream& problems) {
  auto what = inspect(path);
  result<void> asked;
  if (what) asked = add_asked(*what, options);
  if (!what || !asked) {
    problems << "cedar: " << (what ? asked.error() : what.error()).message << '\n';
    return 1;
  }
  options.json ? print_json(*what, out) : print_text(*what, out);
  if (!what->weights) return 0;
  const auto outcome = what->weights->differences.outcome(path.string());
  if (!outcome) problems << "cedar: " << outcome.error().message << '\n';
  return outcome ? 0 : 1;
}

void add_inspect(CLI::App& app, int& exit_code) {
  struct options : inspect_options {
    std::string path;
    bool cache = false;
    std::optional<std::uint32_t> context;
  };
  CLI::App* command =
      app.add_subcommand("inspect", "Print a checkpoint's architecture, schedule and sizes");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("path", chosen->path, "Checkpoint folder, or config.json")->required();
  command->add_flag("--json", chosen->json, "Print one JSON object");
  CLI::Option* cache = command->add_flag(
      "--cache", chosen->cache, "Print what a sequence takes of the caches, by their allocators");
  command
      ->add_option("--context", chosen->context,
                   "Positions of that sequence (default: 65536, or all that the model has)")
      ->check(CLI::Range(1U, 1U << 30))
      ->needs(cache);
  command->add_flag("--tensors", chosen->tensors, "List every tensor");
  command->add_option("--topology", chosen->topology,
                      "Topology file: print which unit, device and node each tensor would be on");
  command->callback([chosen, &exit_code] {
    if (chosen->cache) {
      chosen->cache_positions = chosen->context.value_or(65536);
      chosen->fewer_positions = !chosen->context;
    }
    exit_code = run_inspect(chosen->path, *chosen, std::cout, std::cerr);
  });
}

}  // namespace cedar::tools
