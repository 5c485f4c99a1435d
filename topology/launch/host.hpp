// Hosts by name.
#pragma once

#include <string>

#include "runtime/base/result.hpp"

namespace cedar::topology {

/// The IPv4 address of `host`, in digits; a name is looked up. Blocks as long as that takes. Error:
/// not_found, naming the host and why.
result<std::string> address_of(const std::string& host);

}  // namespace cedar::topology
