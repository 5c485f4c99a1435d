// What a running `cedar serve` says of itself.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/result.hpp"
#include "runtime/http/client/client.hpp"
#include "tools/cedar/metrics_text.hpp"

namespace cedar::tools {

/// The name of the model that `server` serves. Errors: not_found (nothing listens there), mismatch
/// (something else does), and those of http::client.
result<std::string> served_model_of(const http::server_url& server);

/// Its /metrics. Errors: the same.
result<metrics_text> read_metrics(const http::server_url& server);

struct server_state {
  std::string model;
  nlohmann::ordered_json ready;  ///< the members ready, draining, problem, units of /ready
  metrics_text metrics;
};

/// All that it says. Errors: the same.
result<server_state> read_state(const http::server_url& server);

}  // namespace cedar::tools
