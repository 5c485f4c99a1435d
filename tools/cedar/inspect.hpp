// `cedar inspect PATH`: what a checkpoint or a configuration is, without running it.
//
// Reads config.json and, in a folder with weights, the safetensors headers; maps no tensor.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/manifest.hpp"
#include "runtime/model/schedule.hpp"
#include "runtime/stage/cache_size.hpp"

namespace CLI {
class App;
}

namespace cedar::tools {

/// What the weights in the folder turned out to be.
struct weights_inspection {
  std::size_t files = 0;
  std::size_t files_absent = 0;  ///< named by the index, not on this host
  model::manifest_check differences;
  std::string fingerprint;  ///< of configuration, names, dtypes and shapes
};

struct placement_inspection;

struct inspection {
  std::filesystem::path path;
  model::model_config config;
  std::vector<std::string> warnings;
  std::vector<model::expected_tensor> tensors;  ///< the manifest
  std::optional<weights_inspection> weights;  ///< absent if there are none at `path`
  std::uint32_t cache_positions = 0;  ///< that `cache` is of; 0: none was asked for
  stage::cache_size cache;
  std::unique_ptr<const placement_inspection> placed;  ///< null if no topology was given
  bool list_tensors = false;

  inspection();
  inspection(inspection&&) noexcept;
  ~inspection();
};

/// What to print.
struct inspect_options {
  bool json = false;
  std::uint32_t cache_positions = 0;  ///< what a sequence of so many takes of the caches; 0: no
  bool fewer_positions = false;  ///< than `cache_positions`, if the model has fewer
  bool tensors = false;  ///< a line for each
  std::filesystem::path topology{};  ///< where its units would put them; empty: no placement
};

/// Reads `path`: a checkpoint's folder, a folder with config.json alone, or the file itself.
/// Errors: those of parse_config(), make_engram_tables() and checkpoint::open().
result<inspection> inspect(const std::filesystem::path& path);

/// The report for a person.
void print_text(const inspection& what, std::ostream& out);
/// The same as one JSON object.
void print_json(const inspection& what, std::ostream& out);

/// inspect() and print to `out`, problems to `problems`. Returns the exit code: 0, or 1 if
/// something is wrong with the configuration, the tensors or the topology.
int run_inspect(const std::filesystem::path& path, const inspect_options& options,
                std::ostream& out, std::ostream& problems);

/// Adds the subcommand `inspect` to `app`; it sets `exit_code`, which must outlive the parse.
void add_inspect(CLI::App& app, int& exit_code);

}  // namespace cedar::tools
