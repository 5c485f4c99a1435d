#include "kernels/reference/reference_backend.hpp"

#include "kernels/reference/internal/reference_class.hpp"

namespace cedar::kernels {

std::unique_ptr<backend> make_reference_backend() {
  return std::make_unique<reference::reference_backend>();
}

}  // namespace cedar::kernels
