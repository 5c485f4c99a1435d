// Images in the URLs of requests.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace cedar::http {

/// The bytes of "data:image/png;base64,..." (also image/jpeg, image/webp). What they are is for a
/// decoder to say. Errors: invalid_argument: another kind of URL, another type, no or wrong base64.
result<std::vector<std::byte>> read_data_url(std::string_view url);

}  // namespace cedar::http
