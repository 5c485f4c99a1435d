// ucs_status_t becomes cedar::error here, and is seen nowhere outside of this folder.
#pragma once

#include <ucs/type/status.h>

#include <string>

#include "runtime/base/result.hpp"

namespace cedar::transport::ucx {

inline tl::unexpected<error> fail_ucx(const std::string& what, ucs_status_t status,
                                      errc code = errc::io) {
  return fail(code, what + ": " + ucs_status_string(status));
}

}  // namespace cedar::transport::ucx
