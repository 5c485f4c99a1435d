// `cedar devices`: what of this machine a topology may name as a device, and why not the rest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/interface/plugin.hpp"
#include "runtime/base/result.hpp"

namespace CLI {
class App;
}

namespace cedar::tools {

/// What the machine has, as the report shows it.
struct machine_devices {
  std::size_t processors = 0;  ///< that this process may use
  bool cpu_usable = false;  ///< the processor has what kind cpu needs
  result<std::vector<kernels::cuda::device_description>> cuda;
};

/// Of this machine.
machine_devices find_devices();

/// A line for each device: its kind, whether this program can use it, what it is, and why not.
std::string render_devices(const machine_devices& found);

/// Adds the subcommand `devices` to `app`; it sets `exit_code`, which must outlive the parse.
void add_devices(CLI::App& app, int& exit_code);

}  // namespace cedar::tools
