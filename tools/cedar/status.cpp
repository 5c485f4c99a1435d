#include "tools/cedar/status.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/cedar/served_model.hpp"

namespace cedar::tools {

namespace {

using nlohmann::ordered_json;

struct options {
  std::string url;
  bool json = false;
};

double ratio(double value, double by) {
  return by > 0 ? value / by : 0;
}

/// Responses to requests for answers by their status, and those to all others together.
ordered_json responses_json(const metrics_text& metrics) {
  std::map<std::string, double> by_status;
  double others = 0;
  for (const metric_sample& one : metrics.of("cedar_http_responses_total")) {
    const auto label = [&](const char* name) {
      const auto found = one.labels.find(name);
      return found == one.labels.end() ? std::string("?") : found->second;
    };
    if (label("route").ends_with("completions"))
      by_status[label("status")] += one.value;
    else
      others += one.value;
  }
  return {{"answers", by_status}, {"others", others}};
}

/// What left on every edge, by name.
ordered_json edges_json(const metrics_text& metrics) {
  std::map<std::string, ordered_json> edges;
  const auto read = [&](const char* key, const char* metric) {
    for (const metric_sample& one : metrics.of(metric))
      if (const auto edge = one.labels.find("edge"); edge != one.labels.end())
        edges[edge->second][key] = one.value;
  };
  read("messages", "cedar_edge_messages_total");
  read("bytes", "cedar_edge_bytes_total");
  read("credit_wait_seconds", "cedar_edge_credit_wait_seconds_total");
  return edges;
}

/// How every link was at the start, by its direction.
ordered_json links_json(const metrics_text& metrics) {
  std::map<std::string, ordered_json> links;
  const auto read = [&](const char* key, const char* metric) {
    for (const metric_sample& one : metrics.of(metric)) {
      const auto node = one.labels.find("node");
      const auto peer = one.labels.find("peer");
      if (node != one.labels.end() && peer != one.labels.end())
        links[node->second + " -> " + peer->second][key] = one.value;
    }
  };
  read("round_trip_seconds", "cedar_link_round_trip_seconds");
  read("bytes_per_second", "cedar_link_bytes_per_second");
  return links;
}

/// Bytes of all units together, by kind.
ordered_json caches_json(const metrics_text& metrics) {
  std::map<std::string, double> bytes{{"pages", 0}, {"kept_pages", 0}, {"rings", 0}};
  for (const metric_sample& one : metrics.of("cedar_cache_bytes"))
    if (const auto kind = one.labels.find("kind"); kind != one.labels.end())
      bytes[kind->second] += one.value;
  return bytes;
}

ordered_json status_json(const http::server_url& server, const server_state& state) {
  const metrics_text& metrics = state.metrics;
  const double generated = metrics.sum("cedar_generated_tokens_total");
  const double up_s = metrics.sum("cedar_up_seconds");
  return {{"url", server.text()},
          {"model", state.model},
          {"ready", state.ready["ready"]},
          {"draining", state.ready["draining"]},
          {"problem", state.ready["problem"]},
          {"units", state.ready["units"]},
          {"up_seconds", up_s},
          {"requests",
           {{"running", metrics.sum("cedar_scheduler_requests_running")},
            {"waiting", metrics.sum("cedar_scheduler_requests_waiting")},
            {"admitted", metrics.sum("cedar_answers_open")},
            {"admitted_tokens", metrics.sum("cedar_tokens_open")},
            {"steps_in_flight", metrics.sum("cedar_scheduler_steps_in_flight")}}},
          {"kv_positions", metrics.sum("cedar_kv_positions")},
          {"kv_positions_max", metrics.sum("cedar_kv_positions_max")},
          {"caches", caches_json(metrics)},
          {"prefixes",
           {{"kept", metrics.sum("cedar_prefixes")},
            {"positions", metrics.sum("cedar_prefix_positions")},
            {"hits", metrics.sum("cedar_prefix_hits_total")},
            {"reused_positions", metrics.sum("cedar_prefix_reused_positions_total")},
            {"evictions", metrics.sum("cedar_prefix_evictions_total")}}},
          {"edges", edges_json(metrics)},
          {"links", links_json(metrics)},
          {"responses", responses_json(metrics)},
          {"tokens",
           {{"prompt", metrics.sum("cedar_prompt_tokens_total")},
            {"generated", generated},
            {"generated_per_second", ratio(generated, up_s)}}},
          {"first_token_ms", 1e3 * ratio(metrics.sum("cedar_time_to_first_token_seconds_sum"),
                                         metrics.sum("cedar_time_to_first_token_seconds_count"))},
          {"generation_ms", 1e3 * ratio(metrics.sum("cedar_generation_seconds_sum"),
                                        metrics.sum("cedar_generation_seconds_count"))}};
}

std::string links_text(const ordered_json& links) {
  if (links.empty()) return "";
  std::string out =
      fmt::format("\n{:<48}{:>18}{:>16}\n", "link at the start", "round trip ms", "Mbit/s");
  for (const auto& [ends, link] : links.items())
    out +=
        fmt::format("{:<48}{:>18.3f}{:>16.1f}\n", ends, 1e3 * link.value("round_trip_seconds", 0.0),
                    8e-6 * link.value("bytes_per_second", 0.0));
  return out;
}

std::string status_text(const ordered_json& of) {
  std::string out =
      fmt::format("{}  {}\n", of["url"].get<std::string>(), of["model"].get<std::string>());
  if (of["ready"].get<bool>())
    out += "ready\n";
  else if (of["problem"].is_string())
    out += "NOT READY: " + of["problem"].get<std::string>() + "\n";
  else
    out += of["draining"].get<bool>() ? "NOT READY: it is stopping\n" : "NOT READY\n";
  if (!of["units"].empty()) out += fmt::format("\n{:<24}{:<24}\n", "unit", "node");
  for (const ordered_json& unit : of["units"])
    out += fmt::format("{:<24}{:<24}{}\n", unit["unit"].get<std::string>(),
                       unit["node"].get<std::string>(), unit["up"].get<bool>() ? "up" : "DOWN");
  if (!of["edges"].empty())
    out +=
        fmt::format("\n{:<48}{:>10}{:>16}{:>18}\n", "edge", "messages", "bytes", "credit wait ms");
  for (const auto& [edge, passed] : of["edges"].items())
    out += fmt::format("{:<48}{:>10}{:>16}{:>18.1f}\n", edge, passed.value("messages", 0.0),
                       passed.value("bytes", 0.0), 1e3 * passed.value("credit_wait_seconds", 0.0));
  out += links_text(of["links"]);
  const ordered_json& requests = of["requests"];
  const auto number = [](const ordered_json& value) { return value.get<double>(); };
  out += fmt::format("\nrequests   {} running, {} waiting in the scheduler; {} admitted\n",
                     number(requests["running"]), number(requests["waiting"]),
                     number(requests["admitted"]));
  const double kv_max = number(of["kv_positions_max"]);
  out += fmt::format("held       {}{} positions of KV, {} admitted tokens, {} steps in flight\n",
                     number(of["kv_positions"]), kv_max > 0 ? fmt::format(" of {}", kv_max) : "",
                     number(requests["admitted_tokens"]), number(requests["steps_in_flight"]));
  const ordered_json& caches = of["caches"];
  out +=
      fmt::format("caches     {} bytes of pages, {} of them kept; {} of rings\n",
                  number(caches["pages"]), number(caches["kept_pages"]), number(caches["rings"]));
  const ordered_json& prefixes = of["prefixes"];
  out +=
      fmt::format("prefixes   {} of {} positions; {} hits spared {} positions, {} were dropped\n",
                  number(prefixes["kept"]), number(prefixes["positions"]), number(prefixes["hits"]),
                  number(prefixes["reused_positions"]), number(prefixes["evictions"]));
  out += "responses ";
  for (const auto& [status, count] : of["responses"]["answers"].items())
    out += fmt::format(" {} x {},", number(count), status);
  out += fmt::format(" {} to other questions, this one among them\n",
                     number(of["responses"]["others"]));
  out += fmt::format("tokens     {} of prompts, {} generated: {:.1f}/s over {:.0f} s\n",
                     number(of["tokens"]["prompt"]), number(of["tokens"]["generated"]),
                     number(of["tokens"]["generated_per_second"]), number(of["up_seconds"]));
  out += fmt::format("times      {:.1f} ms to the first token, {:.1f} ms to the end, on average\n",
                     number(of["first_token_ms"]), number(of["generation_ms"]));
  return out;
}

result<void> run(const options& chosen) {
  const auto server = http::parse_server_url(chosen.url);
  if (!server) return fail(server.error());
  const auto state = read_state(*server);
  if (!state) return fail(state.error());
  const ordered_json status = status_json(*server, *state);
  fmt::print("{}", chosen.json ? status.dump(2) + "\n" : status_text(status));
  return {};
}

}  // namespace

void add_status(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("status", "What a running server is doing");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("url", chosen->url, "http://HOST:PORT, as cedar serve printed it")
      ->required();
  command->add_flag("--json", chosen->json, "Print one JSON object");
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (ran) return;
    fmt::print(stderr, "cedar: {}\n", ran.error().message);
    exit_code = 1;
  });
}

}  // namespace cedar::tools
