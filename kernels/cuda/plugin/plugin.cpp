// The module cedar-cuda.so, as interface/plugin.hpp describes it.
#include "kernels/cuda/interface/plugin.hpp"

#include "kernels/cuda/handles/cudart_runtime.hpp"
#include "kernels/cuda/plugin/device_backend.hpp"

namespace cedar::kernels::cuda {

namespace {

result<std::vector<device_description>> devices() {
  return make_cudart_runtime()->devices();
}

}  // namespace

}  // namespace cedar::kernels::cuda

extern "C" __attribute__((visibility("default"))) const cedar::kernels::cuda::plugin*
cedar_cuda_plugin() {
  static const cedar::kernels::cuda::plugin offered{cedar::kernels::cuda::plugin_version,
                                                    cedar::kernels::cuda::devices,
                                                    cedar::kernels::cuda::make_device_backend};
  return &offered;
}
