// What `cedar bench serve` is told on the command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace cedar::tools {

struct load_options {
  std::string url;  ///< of a server that runs; empty: `topology` has one started
  std::filesystem::path topology;
  std::filesystem::path model;  ///< with a topology; empty: its own
  std::uint32_t concurrency = 8;  ///< of the closed loop
  double rate = 0;  ///< requests a second of the open loop; 0: closed
  std::uint64_t requests = 0;  ///< in all; 0: as many as `seconds` have room for
  double seconds = 0;  ///< 0: until `requests` have ended
  std::uint32_t prompts = 64;
  std::uint32_t prompt_tokens = 32;
  std::uint32_t token_ids = 1024;
  std::uint32_t max_tokens = 64;
  double temperature = 1;
  std::uint64_t seed = 1;
  bool ignore_eos = false;
  /// For the server to end each answer, as requests tell it by their member 'timeout'; none: it has
  /// its own.
  std::optional<double> timeout_s;
  double deadline_s = 60;  ///< for each request to have ended; then this side gives it up
  bool verify = false;
  std::filesystem::path json;
};

/// Adds all of them.
void add_load_options(CLI::App& command, load_options& options);

/// After parsing: what no option can see alone, and the default of the length. Throws CLI's errors
/// (a wrong command line).
void settle(load_options& options);

}  // namespace cedar::tools
