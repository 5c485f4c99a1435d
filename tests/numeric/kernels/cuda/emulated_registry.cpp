// The registry of this program (kernels/registry/registry.hpp): the device's backend alone,
// emulated. So the cases of tests/numeric/kernels run on it as they are.
#include "kernels/cuda/launch/cuda_backend.hpp"
#include "kernels/registry/registry.hpp"

namespace cedar::kernels {

std::vector<std::string_view> backend_names() {
  return {"cuda"};
}

std::unique_ptr<backend> make_backend(std::string_view name, const backend_options&) {
  if (name != "cuda") return nullptr;
  return std::make_unique<cuda::cuda_backend>(cuda::stream_handle{}, plan::h200);
}

}  // namespace cedar::kernels
