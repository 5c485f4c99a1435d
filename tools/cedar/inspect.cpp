#include "tools/cedar/inspect.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <set>

#include "runtime/model/engram_hash.hpp"
#include "runtime/store/checkpoint.hpp"
#include "runtime/store/fingerprint.hpp"

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

}  // namespace

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

int run_inspect(const std::filesystem::path& path, bool json, std::ostream& out,
                std::ostream& problems, std::uint32_t cache_positions) {
  auto what = inspect(path);
  if (!what) {
    problems << "cedar: " << what.error().message << '\n';
    return 1;
  }
  if (cache_positions > what->config.max_positions) {
    problems << "--context " << cache_positions << " is beyond the " << what->config.max_positions
             << " positions of the model\n";
    return 1;
  }
  if (cache_positions > 0) {
    what->cache_positions = cache_positions;
    what->cache =
        stage::cache_of_sequence(what->config, model::schedule(what->config), cache_positions);
  }
  json ? print_json(*what, out) : print_text(*what, out);
  if (!what->weights) return 0;
  const auto outcome = what->weights->differences.outcome(path.string());
  if (!outcome) problems << "cedar: " << outcome.error().message << '\n';
  return outcome ? 0 : 1;
}

void add_inspect(CLI::App& app, int& exit_code) {
  struct options {
    std::string path;
    bool json = false;
    bool cache = false;
    std::uint32_t context = 65536;
  };
  CLI::App* command =
      app.add_subcommand("inspect", "Print a checkpoint's architecture, schedule and sizes");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("path", chosen->path, "Checkpoint folder, or config.json")->required();
  command->add_flag("--json", chosen->json, "Print one JSON object");
  CLI::Option* cache = command->add_flag(
      "--cache", chosen->cache, "Print what a sequence takes of the caches, by their allocators");
  command->add_option("--context", chosen->context, "Positions of that sequence (default: 65536)")
      ->check(CLI::Range(1U, 1U << 30))
      ->needs(cache);
  command->callback([chosen, &exit_code] {
    exit_code = run_inspect(chosen->path, chosen->json, std::cout, std::cerr,
                            chosen->cache ? chosen->context : 0);
  });
}

}  // namespace cedar::tools
