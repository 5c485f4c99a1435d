// result<T>: a value, or an error that the caller is expected to handle.
//
// tl::expected gives the mechanics; cedar::error carries a code to branch on and a text for people:
// what failed, where, and what to do. Whoever passes an error on may add context in front of it.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "runtime/base/errc.hpp"

namespace cedar {

struct error {
  errc code = errc::io;
  std::string message;

  /// The same error with "context: " in front of the message.
  error with(const std::string& context) const { return {code, context + ": " + message}; }
};

template <class T>
using result = tl::expected<T, error>;

/// `return fail(errc::malformed, "...")` from a function that returns result<T>.
inline tl::unexpected<error> fail(errc code, std::string message) {
  return tl::unexpected<error>(error{code, std::move(message)});
}
inline tl::unexpected<error> fail(error what) { return tl::unexpected<error>(std::move(what)); }

}  // namespace cedar
