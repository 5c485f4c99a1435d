// A module as an older build would have left it.
#include "kernels/cuda/interface/plugin.hpp"

extern "C" const cedar::kernels::cuda::plugin* cedar_cuda_plugin() {
  static const cedar::kernels::cuda::plugin offered{0, nullptr};
  return &offered;
}
