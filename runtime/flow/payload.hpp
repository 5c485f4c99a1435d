// Bytes that travel: written once by their producer, then shared read-only by every consumer.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "kernels/base/buffer.hpp"

namespace cedar::flow {

/// Immutable bytes of one message.
// SHARED: by the message, the transport while it is on its way, and every consumer that computes
// from it; freed when the last of them drops it.
using payload_ref = std::shared_ptr<const kernels::buffer>;

/// Gives up write access: from here on the bytes are shared and constant.
inline payload_ref freeze(kernels::buffer memory) {
  return std::make_shared<const kernels::buffer>(std::move(memory));
}

inline std::span<const std::byte> bytes_of(const payload_ref& payload) {
  return payload ? payload->span() : std::span<const std::byte>{};
}

}  // namespace cedar::flow
