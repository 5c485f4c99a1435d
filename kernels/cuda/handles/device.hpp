// A device of a runtime, and what belongs to it.
//
// Handles (stream.hpp, event.hpp, memory.hpp, graph.hpp) are move-only, keep the device that made
// them, and check it wherever two of them meet: mixing devices is a defect with both numbers, not
// an illegal address in a kernel later. A moved-from handle may only be destroyed or assigned to.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cuda/handles/runtime.hpp"

namespace cedar::kernels::cuda {

/// Non-owning. The runtime outlives everything that is made of it.
struct device_ref {
  runtime* api = nullptr;
  std::uint32_t index = 0;

  friend bool operator==(const device_ref&, const device_ref&) = default;
};

/// Defect unless both are the same device; `what` says who meets whom ("stream and buffer").
void require_same(const device_ref& one, const device_ref& other, const char* what);

namespace detail {

/// Gives a native object back to the device that made it. What the runtime then says is not heard:
/// the same error comes back from every later call.
template <auto Release>
struct give_back {
  device_ref device;
  template <class Native>
  void operator()(Native* native) const noexcept {
    (device.api->*Release)(device.index, native);
  }
};

template <class Native, auto Release>
using owned = std::unique_ptr<Native, give_back<Release>>;

}  // namespace detail

}  // namespace cedar::kernels::cuda
