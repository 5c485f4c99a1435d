// Expected failures of the running system, named by what the caller should do about them.
#pragma once

#include <cstdint>
#include <string_view>

namespace cedar {

enum class errc : std::uint8_t {
  invalid_argument,  ///< the person's input is wrong: show the text, stop this request or command
  not_found,  ///< a file, tensor or name is missing: show the text, stop the command
  malformed,  ///< bytes do not follow their format: drop the frame or refuse the file
  mismatch,  ///< two things that must agree differ (config and tensors, two nodes): stop
  capacity,  ///< a bound was reached (context, pages, queue): shed this request
  timeout,  ///< a deadline passed: shed this request, report what was waited for
  peer_lost,  ///< a process died or stopped: fail its requests, reconnect
  refused,  ///< the other side said no (secret, version, fingerprint): stop the node
  cancelled,  ///< somebody asked for it: clean up quietly
  io,  ///< the operating system failed a call: stop the node
  defect,  ///< the program broke a promise of its own: stop the node, report the text
};

std::string_view to_string(errc code) noexcept;

}  // namespace cedar
