// What a client is told when its request is not answered: HTTP status and OpenAI's error object.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <tl/expected.hpp>

#include "runtime/base/result.hpp"

namespace cedar::http {

struct api_error {
  unsigned status = 500;
  std::string message;  ///< what, where, what to do
  std::string type = "server_error";
  std::string param;  ///< the member of the body that is wrong; empty: none
  std::string code;  ///< for programs, e.g. "model_not_found"; empty: none
  std::uint32_t retry_after_s = 0;  ///< goes to the header Retry-After; 0: no header

  /// {"error": {"message", "type", "param", "code"}}
  std::string body() const;
};

template <class T>
using api_result = tl::expected<T, api_error>;

/// 400 invalid_request_error.
api_error bad_request(std::string message, std::string param = {}, std::string code = {});
/// 429 with Retry-After.
api_error overloaded(std::string message);
/// 503 with Retry-After.
api_error unavailable(std::string message);
/// 503 with Retry-After and code "deadline_exceeded": an answer was not finished within `limit`.
api_error deadline_exceeded(std::chrono::milliseconds limit);

/// What an error of the pipeline means to the client: invalid_argument 400, capacity 429, else 503
/// (the pipeline) or 500 (a defect).
api_error api_error_of(const error& what);

}  // namespace cedar::http
