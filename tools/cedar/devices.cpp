#include "tools/cedar/devices.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "kernels/base/placement.hpp"
#include "kernels/registry/cuda_devices.hpp"
#include "kernels/registry/registry.hpp"
#include "topology/plan/memory.hpp"

namespace cedar::tools {

namespace {

std::string line(const std::string& kind, bool usable, const std::string& what) {
  return fmt::format("{:<10} {:<7} {}\n", kind, usable ? "yes" : "no", what);
}

std::string cuda_line(const kernels::cuda::device_description& device) {
  const std::uint32_t architecture = device.limits.architecture;
  const result<void> usable = kernels::check_usable(device);
  return line(
      fmt::format("cuda {}", device.index), usable.has_value(),
      fmt::format("{}, {}, compute capability {}.{}, {} multiprocessors{}", device.name,
                  topology::bytes_text(device.memory_bytes), architecture / 10, architecture % 10,
                  device.limits.multiprocessors, usable ? "" : ": " + usable.error().message));
}

}  // namespace

machine_devices find_devices() {
  const auto names = kernels::backend_names();
  return {kernels::usable_processors().size(), std::ranges::find(names, "cpu") != names.end(),
          kernels::cuda_devices()};
}

std::string render_devices(const machine_devices& found) {
  std::string text = fmt::format("{:<10} {:<7} {}\n", "kind", "usable", "what");
  text += line("cpu", found.cpu_usable,
               found.cpu_usable ? fmt::format("{} processor{}: at most as many threads",
                                              found.processors, found.processors == 1 ? "" : "s")
                                : "the processor needs AVX2, FMA and F16C");
  if (!found.cuda)
    text += line("cuda", false, found.cuda.error().message);
  else
    for (const auto& device : *found.cuda) text += cuda_line(device);
  return text + line("reference", true, "one thread, in double precision: to judge the others by");
}

void add_devices(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "devices", "List what of this machine a topology may name as a device, and why not the rest");
  command->callback([&exit_code] {
    fmt::print("{}", render_devices(find_devices()));
    exit_code = 0;
  });
}

}  // namespace cedar::tools
