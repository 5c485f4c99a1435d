#include "kernels/cuda/handles/cudart_runtime.hpp"

#include <cuda_runtime_api.h>

#include <string>

namespace cedar::kernels::cuda {

namespace {

/// CUDA's versions are 1000 * major + 10 * minor.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

errc code_of(cudaError_t status) noexcept {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return errc::capacity;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
      return errc::not_found;
    case cudaErrorInsufficientDriver:
      return errc::mismatch;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidResourceHandle:
      return errc::defect;
    default:
      return errc::io;
  }
}

/// One code of CUDA for two things: the version that the driver knows tells them apart.
tl::unexpected<error> without_driver() {
  int known = 0;
  int needed = 0;
  cudaDriverGetVersion(&known);
  cudaRuntimeGetVersion(&needed);
  if (known == 0)
    return fail(errc::not_found,
                "no NVIDIA driver: libcuda.so.1 is missing or finds no kernel module; install a "
                "driver for CUDA " +
                    version_text(needed) + " or later ('nvidia-smi' shows it)");
  return fail(errc::mismatch, "the NVIDIA driver is too old: it knows CUDA " + version_text(known) +
                                  ", and " + version_text(needed) + " is needed; update it");
}

tl::unexpected<error> failed(cudaError_t status) {
  if (status == cudaErrorInsufficientDriver) return without_driver();
  if (status == cudaErrorNoDevice)
    return fail(
        errc::not_found,
        "the NVIDIA driver shows no device: none is there, or CUDA_VISIBLE_DEVICES hides it");
  return fail(code_of(status), std::string("CUDA: ") + cudaGetErrorString(status) + " (" +
                                   cudaGetErrorName(status) + ")");
}

result<void> outcome(cudaError_t status) {
  if (status != cudaSuccess) return failed(status);
  return {};
}

template <class T>
result<T> outcome(cudaError_t status, T value) {
  if (status != cudaSuccess) return failed(status);
  return value;
}

// Names of ours for CUDA's pointers.
cudaStream_t cu(native_stream* stream) noexcept {
  return reinterpret_cast<cudaStream_t>(stream);
}
cudaEvent_t cu(native_event* event) noexcept {
  return reinterpret_cast<cudaEvent_t>(event);
}
cudaGraph_t cu(native_graph* graph) noexcept {
  return reinterpret_cast<cudaGraph_t>(graph);
}
cudaGraphExec_t cu(native_graph_exec* exec) noexcept {
  return reinterpret_cast<cudaGraphExec_t>(exec);
}

/// Calls of a thread go to its current device.
cudaError_t use(std::uint32_t device) noexcept {
  return cudaSetDevice(static_cast<int>(device));
}

result<device_description> describe(std::uint32_t index) {
  cudaDeviceProp found{};
  const cudaError_t status = cudaGetDeviceProperties(&found, static_cast<int>(index));
  if (status != cudaSuccess) return failed(status);
  const auto count = [](auto value) { return static_cast<std::uint32_t>(value); };
  return device_description{
      index,
      found.name,
      found.totalGlobalMem,
      {count(10 * found.major + found.minor), count(found.multiProcessorCount),
       count(found.maxThreadsPerBlock), count(found.maxThreadsPerMultiProcessor),
       count(found.maxBlocksPerMultiProcessor), count(found.regsPerMultiprocessor),
       count(found.sharedMemPerBlockOptin), count(found.sharedMemPerMultiprocessor)},
      found.pageableMemoryAccess != 0};
}

class cudart final : public runtime {
 public:
  result<std::vector<device_description>> devices() override {
    int count = 0;
    if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess)
      return failed(status);
    if (count == 0) return failed(cudaErrorNoDevice);
    std::vector<device_description> out;
    for (std::uint32_t index = 0; index < static_cast<std::uint32_t>(count); ++index) {
      auto each = describe(index);
      if (!each) return fail(each.error().with("CUDA device " + std::to_string(index)));
      out.push_back(*std::move(each));
    }
    return out;
  }

  result<std::byte*> allocate(std::uint32_t device, std::size_t bytes) override {
    void* memory = nullptr;
    cudaError_t status = use(device);
    if (status == cudaSuccess) status = cudaMalloc(&memory, bytes);
    return outcome(status, static_cast<std::byte*>(memory));
  }
  void release(std::uint32_t device, std::byte* memory) noexcept override {
    use(device);
    cudaFree(memory);
  }
  result<std::byte*> allocate_pinned(std::uint32_t device, std::size_t bytes) override {
    void* memory = nullptr;
    cudaError_t status = use(device);
    if (status == cudaSuccess) status = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
    return outcome(status, static_cast<std::byte*>(memory));
  }
  void release_pinned(std::uint32_t device, std::byte* memory) noexcept override {
    use(device);
    cudaFreeHost(memory);
  }

  result<native_stream*> make_stream(std::uint32_t device) override {
    cudaStream_t made = nullptr;
    cudaError_t status = use(device);
    // Whoever waits for the device sleeps: a host thread that spins takes a core from CPU devices.
    if (status == cudaSuccess) status = cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
    // Non-blocking: work of the default stream, which nobody here uses, is none of its business.
    if (status == cudaSuccess) status = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return outcome(status, reinterpret_cast<native_stream*>(made));
  }
  void release_stream(std::uint32_t device, native_stream* stream) noexcept override {
    use(device);
    cudaStreamDestroy(cu(stream));
  }
  result<void> finish(std::uint32_t device, native_stream* stream) override {
    use(device);
    return outcome(cudaStreamSynchronize(cu(stream)));
  }
  result<void> copy(std::uint32_t device, native_stream* stream, std::byte* to,
                    const std::byte* from, std::size_t bytes) override {
    use(device);
    return outcome(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cu(stream)));
  }
  result<void> clear(std::uint32_t device, native_stream* stream, std::byte* memory,
                     std::size_t bytes) override {
    use(device);
    return outcome(cudaMemsetAsync(memory, 0, bytes, cu(stream)));
  }

  result<native_event*> make_event(std::uint32_t device) override {
    cudaEvent_t made = nullptr;
    cudaError_t status = use(device);
    if (status == cudaSuccess)
      status = cudaEventCreateWithFlags(&made, cudaEventDisableTiming | cudaEventBlockingSync);
    return outcome(status, reinterpret_cast<native_event*>(made));
  }
  void release_event(std::uint32_t device, native_event* event) noexcept override {
    use(device);
    cudaEventDestroy(cu(event));
  }
  result<void> record(std::uint32_t device, native_stream* stream, native_event* event) override {
    use(device);
    return outcome(cudaEventRecord(cu(event), cu(stream)));
  }
  result<void> wait(std::uint32_t device, native_stream* stream, native_event* event) override {
    use(device);
    return outcome(cudaStreamWaitEvent(cu(stream), cu(event), cudaEventWaitDefault));
  }
  result<bool> reached(std::uint32_t device, native_event* event) override {
    use(device);
    const cudaError_t status = cudaEventQuery(cu(event));
    if (status == cudaErrorNotReady) return false;
    return outcome(status, true);
  }
  result<void> finish(std::uint32_t device, native_event* event) override {
    use(device);
    return outcome(cudaEventSynchronize(cu(event)));
  }

  result<void> begin_capture(std::uint32_t device, native_stream* stream) override {
    use(device);
    // Other threads may allocate meanwhile.
    return outcome(cudaStreamBeginCapture(cu(stream), cudaStreamCaptureModeThreadLocal));
  }
  result<native_graph*> end_capture(std::uint32_t device, native_stream* stream) override {
    cudaGraph_t made = nullptr;
    use(device);
    const cudaError_t status = cudaStreamEndCapture(cu(stream), &made);
    return outcome(status, reinterpret_cast<native_graph*>(made));
  }
  void release_graph(std::uint32_t device, native_graph* graph) noexcept override {
    use(device);
    cudaGraphDestroy(cu(graph));
  }
  result<native_graph_exec*> instantiate(std::uint32_t device, native_graph* graph) override {
    cudaGraphExec_t made = nullptr;
    use(device);
    const cudaError_t status = cudaGraphInstantiate(&made, cu(graph), 0);
    return outcome(status, reinterpret_cast<native_graph_exec*>(made));
  }
  void release_graph_exec(std::uint32_t device, native_graph_exec* exec) noexcept override {
    use(device);
    cudaGraphExecDestroy(cu(exec));
  }
  result<void> launch(std::uint32_t device, native_stream* stream,
                      native_graph_exec* exec) override {
    use(device);
    return outcome(cudaGraphLaunch(cu(exec), cu(stream)));
  }
};

}  // namespace

std::unique_ptr<runtime> make_cudart_runtime() {
  return std::make_unique<cudart>();
}

}  // namespace cedar::kernels::cuda
