#include "runtime/http/api_error.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace cedar::http {

namespace {

using json = nlohmann::ordered_json;

/// Queues move by a request every few seconds; there is nothing better to promise.
constexpr std::uint32_t retry_overloaded_s = 1;
constexpr std::uint32_t retry_unavailable_s = 5;

json text_or_null(const std::string& text) {
  return text.empty() ? json(nullptr) : json(text);
}

}  // namespace

std::string api_error::body() const {
  const json out{{"error",
                  {{"message", message},
                   {"type", type},
                   {"param", text_or_null(param)},
                   {"code", text_or_null(code)}}}};
  // Texts may quote what a client sent.
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

api_error bad_request(std::string message, std::string param, std::string code) {
  return {400, std::move(message), "invalid_request_error", std::move(param), std::move(code), 0};
}

api_error overloaded(std::string message) {
  return {429, std::move(message),    "rate_limit_error",
          {},  "rate_limit_exceeded", retry_overloaded_s};
}

api_error unavailable(std::string message) {
  return {503, std::move(message), "server_error", {}, "unavailable", retry_unavailable_s};
}

api_error deadline_exceeded(std::chrono::milliseconds limit) {
  return {503,
          fmt::format("the answer was not finished within {} s; ask for fewer tokens, allow more "
                      "time ('timeout', up to the server's own limit), or try again later",
                      static_cast<double>(limit.count()) / 1000),
          "server_error",
          {},
          "deadline_exceeded",
          retry_unavailable_s};
}

api_error api_error_of(const error& what) {
  switch (what.code) {
    case errc::invalid_argument:
      return bad_request(what.message);
    case errc::capacity:
      return overloaded(what.message);
    case errc::defect:
      return {500, what.message, "server_error", {}, "defect", 0};
    default:
      return unavailable(what.message);
  }
}

}  // namespace cedar::http
