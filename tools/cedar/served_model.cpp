#include "tools/cedar/served_model.hpp"

namespace cedar::tools {

namespace {

using nlohmann::json;

/// A server that is not ready says so with 503, and why.
constexpr unsigned not_ready = 503;

tl::unexpected<error> no_cedar(const http::server_url& server) {
  return fail(errc::mismatch, "what listens at " + server.text() +
                                  " is no cedar serve; give the address that it printed");
}

result<std::string> get(const http::server_url& server, const std::string& path,
                        unsigned also = 200) {
  const auto reply = http::ask(server, {path, {}});
  if (!reply && reply.error().code == errc::malformed) return no_cedar(server);
  if (!reply && reply.error().code == errc::not_found)
    return fail(errc::not_found, reply.error().message + "; start cedar serve, or correct the URL");
  if (!reply) return fail(reply.error().with(server.text() + path));
  if (reply->status != 200 && reply->status != also) return no_cedar(server);
  return reply->body;
}

}  // namespace

result<std::string> served_model_of(const http::server_url& server) {
  const auto body = get(server, "/v1/models");
  if (!body) return fail(body.error());
  const json models = json::parse(*body, nullptr, false);
  if (!models.is_object() || !models.contains("data") || !models["data"].is_array() ||
      models["data"].empty())
    return no_cedar(server);
  const json& first = models["data"][0];
  if (!first.is_object() || first.value("owned_by", json()) != "cedar" || !first.contains("id") ||
      !first["id"].is_string())
    return no_cedar(server);
  return first["id"].get<std::string>();
}

result<metrics_text> read_metrics(const http::server_url& server) {
  const auto body = get(server, "/metrics");
  if (!body) return fail(body.error());
  return metrics_text::parse(*body);
}

result<server_state> read_state(const http::server_url& server) {
  auto model = served_model_of(server);
  if (!model) return fail(model.error());
  const auto ready = get(server, "/ready", not_ready);
  if (!ready) return fail(ready.error());
  auto metrics = read_metrics(server);
  if (!metrics) return fail(metrics.error());
  server_state out{std::move(*model), nlohmann::ordered_json::parse(*ready, nullptr, false),
                   std::move(*metrics)};
  for (const char* member : {"ready", "draining", "problem", "units"})
    if (!out.ready.is_object() || !out.ready.contains(member)) return no_cedar(server);
  return out;
}

}  // namespace cedar::tools
