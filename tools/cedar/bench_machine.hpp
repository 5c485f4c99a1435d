// What benches of kernels and layers have in common on the command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/base/result.hpp"
#include "runtime/model/config.hpp"

namespace CLI {
class App;
}

namespace cedar::tools {

struct bench_report;
struct operation_time;

struct machine_options {
  std::filesystem::path like;  ///< empty: the released model
  std::vector<std::uint32_t> threads;  ///< empty: one, and all
  std::string isa = "best";
  std::uint32_t repeat = 5;
  bool json = false;
};

/// --like, --threads, --isa, --repeat, --json.
void add_machine_options(CLI::App& command, machine_options& options);

/// The configuration that is asked for. Errors: those of model::parse_config.
result<model::model_config> config_of(const machine_options& chosen);
/// As told, or one and all processors.
std::vector<std::uint32_t> threads_of(const machine_options& chosen);
/// The cpu backend on so many threads, with the instruction set that is asked for. Error refused:
/// this machine cannot.
result<std::unique_ptr<kernels::backend>> make_bench_backend(const machine_options& chosen,
                                                             std::uint32_t threads);
/// With the machine's settings, and what was asked for.
bench_report begin_report(std::string kind, const machine_options& chosen);

/// "1 thread", "2 threads".
std::string threads_text(std::uint32_t threads);

}  // namespace cedar::tools
