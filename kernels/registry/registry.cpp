#include "kernels/registry/registry.hpp"

#include <array>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/reference/reference_backend.hpp"

namespace cedar::kernels {

namespace {

struct registration {
  std::string_view name;
  bool (*supported)();
  std::unique_ptr<backend> (*make)();
};

bool always() {
  return true;
}

constexpr std::array registrations = {
    registration{"cpu", cpu_backend_supported, make_cpu_backend},
    registration{"reference", always, make_reference_backend},
};

}  // namespace

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const registration& entry : registrations)
    if (entry.supported()) names.push_back(entry.name);
  return names;
}

std::unique_ptr<backend> make_backend(std::string_view name) {
  for (const registration& entry : registrations)
    if (entry.name == name && entry.supported()) return entry.make();
  return nullptr;
}

}  // namespace cedar::kernels
