#include "kernels/registry/cuda_devices.hpp"

#include <dlfcn.h>

#include <string>
#include <system_error>

namespace cedar::kernels {

namespace {

using cuda::device_description;

result<const cuda::plugin*> open_module(const std::filesystem::path& module) {
  std::error_code unreadable;
  if (!std::filesystem::exists(module, unreadable))
    return fail(errc::not_found, module.string() +
                                     " is not there: this program was built without CUDA; build it "
                                     "with CEDAR_CUDA=ON where a CUDA toolkit is");
  void* const opened = ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  // The text begins with the library that is missing.
  if (opened == nullptr)
    return fail(errc::not_found,
                module.string() + " cannot be opened: " + ::dlerror() +
                    "; install the libraries of the CUDA toolkit that it was built with");
  const auto offered =
      reinterpret_cast<cuda::plugin_function>(::dlsym(opened, cuda::plugin_symbol));
  if (offered == nullptr)
    return fail(errc::mismatch, module.string() + " is not a module of this program");
  if (offered()->version != cuda::plugin_version)
    return fail(errc::mismatch, module.string() + " is of another build (version " +
                                    std::to_string(offered()->version) + ", needed is " +
                                    std::to_string(cuda::plugin_version) + "); build it again");
  return offered();
}

std::string named(const device_description& device) {
  return "CUDA device " + std::to_string(device.index) + " (" + device.name + ")";
}

}  // namespace

std::filesystem::path cuda_module_path() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / cuda::plugin_file;
}

result<std::vector<device_description>> cuda_devices(const std::filesystem::path& module) {
  const auto offered = open_module(module);
  if (!offered) return fail(offered.error());
  return (*offered)->devices();
}

result<void> check_usable(const device_description& device) {
  const auto text = [](std::uint32_t architecture) {
    return std::to_string(architecture / 10) + "." + std::to_string(architecture % 10);
  };
  if (device.limits.architecture < cuda::least_architecture)
    return fail(errc::refused, named(device) + " has compute capability " +
                                   text(device.limits.architecture) + ", and " +
                                   text(cuda::least_architecture) + " is the least");
  if (!device.reaches_host_memory)
    return fail(errc::refused,
                named(device) +
                    " does not reach the host's memory by its own addresses, which this "
                    "version of cedar needs: use NVIDIA's open kernel modules (HMM)");
  return {};
}

result<device_description> usable_cuda_device(std::uint32_t index,
                                              const std::filesystem::path& module) {
  const auto devices = cuda_devices(module);
  if (!devices) return fail(devices.error());
  if (index >= devices->size())
    return fail(errc::not_found, "this process sees " + std::to_string(devices->size()) +
                                     " CUDA device" + (devices->size() == 1 ? "" : "s") +
                                     ", and index " + std::to_string(index) +
                                     " is none of them (they count from 0)");
  const device_description& device = (*devices)[index];
  if (const result<void> usable = check_usable(device); !usable) return fail(usable.error());
  return device;
}

result<std::unique_ptr<backend>> make_cuda_backend(std::uint32_t index,
                                                   const std::filesystem::path& module) {
  const auto device = usable_cuda_device(index, module);
  if (!device) return fail(device.error());
  const auto offered = open_module(module);
  if (!offered) return fail(offered.error());
  return (*offered)->make_backend(*device);
}

}  // namespace cedar::kernels
