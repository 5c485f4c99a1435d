// A received frame becomes a message again, or a named error. Home of kj exceptions: none leaves.
#pragma once

#include "runtime/base/result.hpp"
#include "runtime/flow/frame.hpp"
#include "runtime/flow/messages.hpp"

namespace cedar::wire {

struct decoded {
  flow::envelope envelope;
  flow::message message;
};

/// Checks everything before anything is used: checksum over header and payload, version, counts
/// against payload bytes, kinds, row sums, shapes. Tensor bytes stay where they are: the payload
/// buffer becomes the message's payload_ref, cut to the tensor. Errors: malformed (names the
/// field), refused (a protocol version this program does not know).
result<decoded> decode(flow::received_frame frame);

}  // namespace cedar::wire
