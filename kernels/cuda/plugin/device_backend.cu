#include "kernels/cuda/plugin/device_backend.hpp"

#include <utility>

#include "kernels/cuda/handles/cudart_runtime.hpp"
#include "kernels/cuda/handles/stream.hpp"
#include "kernels/cuda/launch/cuda_backend.hpp"

namespace cedar::kernels::cuda {

namespace {

/// A base, so that it is there before the backend and after it.
struct stream_owner {
  std::unique_ptr<runtime> api;
  stream work;
};

class device_backend final : private stream_owner, public cuda_backend {
 public:
  device_backend(stream_owner owner, const plan::device_limits& limits)
      : stream_owner(std::move(owner)),
        cuda_backend({reinterpret_cast<cudaStream_t>(work.native()),
                      static_cast<int>(work.device().index), true},
                     limits) {}
};

}  // namespace

result<std::unique_ptr<backend>> make_device_backend(const device_description& device) {
  auto api = make_cudart_runtime();
  auto work = stream::make({api.get(), device.index});
  if (!work) return fail(work.error());
  return std::make_unique<device_backend>(stream_owner{std::move(api), *std::move(work)},
                                          device.limits);
}

}  // namespace cedar::kernels::cuda
