// What is wrong with one member of a request, and which member that is.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "runtime/base/result.hpp"

namespace cedar::text {

/// invalid_argument. The message begins with the path, so that it can stand for itself.
struct member_error : error {
  std::string
      path;  ///< "messages[2].tool_calls[0].function.name"; empty: no member's in particular

  member_error(std::string member, const std::string& what)
      : error{errc::invalid_argument, member.empty() ? what : member + ": " + what},
        path(std::move(member)) {}

  /// The same, of a member of `outer`: "content[0]" becomes "messages[1].content[0]".
  member_error in(const std::string& outer) const {
    member_error out = *this;
    out.path = path.empty() ? outer : outer + "." + path;
    out.message = outer + (path.empty() ? ": " : ".") + message;
    return out;
  }
};

template <class T>
using member_result = tl::expected<T, member_error>;

/// `return invalid("content[0].text", "missing, or not a string")`
inline tl::unexpected<member_error> invalid(std::string path, const std::string& what) {
  return tl::unexpected<member_error>(member_error(std::move(path), what));
}
inline tl::unexpected<member_error> invalid(member_error what) {
  return tl::unexpected<member_error>(std::move(what));
}

}  // namespace cedar::text
