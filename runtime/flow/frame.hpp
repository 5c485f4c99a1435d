// One message as bytes: what wire encodes and decodes, and what a transport port carries.
//
// 1. A frame that leaves refers to its tensor bytes, never copies them; it may be shared (fanned
// out).
// 2. A frame that arrived owns its payload; tensor bytes start at offset 0 of a buffer, aligned.
// 3. payload = tensor bytes, then the packed lists. What they mean is runtime/wire's business.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "runtime/flow/payload.hpp"

namespace cedar::flow {

/// To be sent. Copying copies header and lists, and shares the tensor.
struct frame {
  std::vector<std::byte> header;  ///< at most wire::header_bytes_max
  payload_ref tensor;  ///< may be null
  std::vector<std::byte> lists;  ///< follows the tensor in the payload

  std::size_t payload_bytes() const noexcept {
    return (tensor ? tensor->bytes() : 0) + lists.size();
  }
  std::size_t bytes() const noexcept { return header.size() + payload_bytes(); }
};

/// As received.
struct received_frame {
  std::vector<std::byte> header;
  kernels::buffer payload;

  std::size_t bytes() const noexcept { return header.size() + payload.bytes(); }
};

}  // namespace cedar::flow
