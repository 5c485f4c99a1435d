#include "kernels/registry/registry.hpp"

#include <array>

#include "kernels/base/check.hpp"
#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/reference/reference_backend.hpp"

namespace cedar::kernels {

namespace {

struct registration {
  std::string_view name;
  bool (*supported)();
  std::uint32_t most_threads;
  std::unique_ptr<backend> (*make)(const backend_options& options);
};

bool always() {
  return true;
}

std::unique_ptr<backend> make_cpu(const backend_options& options) {
  return make_cpu_backend(options.threads, cpu_grain, options.placement);
}

std::unique_ptr<backend> make_reference(const backend_options& options) {
  CEDAR_REQUIRE(options.placement == thread_placement{}, "this backend has no threads of its own");
  return make_reference_backend();
}

constexpr std::array registrations = {
    registration{"cpu", cpu_backend_supported, cpu_threads_max, make_cpu},
    registration{"reference", always, 1, make_reference},
};

const registration* find(std::string_view name) {
  for (const registration& entry : registrations)
    if (entry.name == name && entry.supported()) return &entry;
  return nullptr;
}

}  // namespace

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const registration& entry : registrations)
    if (entry.supported()) names.push_back(entry.name);
  return names;
}

std::uint32_t most_threads(std::string_view name) {
  const registration* found = find(name);
  return found == nullptr ? 0 : found->most_threads;
}

std::unique_ptr<backend> make_backend(std::string_view name, const backend_options& options) {
  const registration* found = find(name);
  if (found == nullptr) return nullptr;
  CEDAR_REQUIRE(options.threads >= 1 && options.threads <= found->most_threads,
                "the backend does not take that many threads");
  return found->make(options);
}

}  // namespace cedar::kernels
