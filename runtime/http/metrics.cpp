#include "runtime/http/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <mutex>

namespace cedar::http {

namespace {

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

/// From a token of a tiny model to a long prompt of a large one, two a doubling.
prometheus::Histogram::BucketBoundaries time_buckets() {
  prometheus::Histogram::BucketBoundaries out;
  for (double bound = 0.001; bound < 600; bound *= 2) {
    out.push_back(bound);
    out.push_back(bound * 1.5);
  }
  return out;
}

prometheus::Family<prometheus::Counter>& counters(prometheus::Registry& to, const char* name,
                                                  const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(to);
}

prometheus::Family<prometheus::Gauge>& gauges(prometheus::Registry& to, const char* name,
                                              const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(to);
}

/// Counts elsewhere are brought up to date when they are read.
void raise(prometheus::Counter& counter, double to) {
  counter.Increment(to - counter.Value());
}

prometheus::Histogram& times(prometheus::Registry& to, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(to).Add({}, time_buckets());
}

}  // namespace

struct metrics::parts {
  std::mutex raising;
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& responses =
      counters(registry, "cedar_http_responses_total", "HTTP responses by route and status");
  prometheus::Counter& prompt_tokens =
      counters(registry, "cedar_prompt_tokens_total", "Tokens of prompts that were taken").Add({});
  prometheus::Counter& generated_tokens =
      counters(registry, "cedar_generated_tokens_total", "Tokens that were generated").Add({});
  prometheus::Family<prometheus::Counter>& ended =
      counters(registry, "cedar_generations_total", "Generations by how they ended");
  prometheus::Histogram& first_token =
      times(registry, "cedar_time_to_first_token_seconds", "From the request to its first token");
  prometheus::Histogram& duration =
      times(registry, "cedar_generation_seconds", "From the request to the end of its answers");
  prometheus::Gauge& answers_open =
      gauges(registry, "cedar_answers_open", "Answers that were admitted and have not ended")
          .Add({});
  prometheus::Gauge& tokens_open =
      gauges(registry, "cedar_tokens_open", "Tokens that admitted answers may take").Add({});
  prometheus::Gauge& downloads_running =
      gauges(registry, "cedar_image_downloads_running", "Requests whose images are fetched")
          .Add({});
  prometheus::Gauge& downloads_waiting =
      gauges(registry, "cedar_image_downloads_waiting", "Requests that wait to fetch their images")
          .Add({});
  prometheus::Gauge& running =
      gauges(registry, "cedar_scheduler_requests_running", "Requests that hold state in stages")
          .Add({});
  prometheus::Gauge& waiting =
      gauges(registry, "cedar_scheduler_requests_waiting", "Requests in the scheduler's queue")
          .Add({});
  prometheus::Gauge& steps =
      gauges(registry, "cedar_scheduler_steps_in_flight", "Steps in flight").Add({});
  prometheus::Gauge& kv_positions =
      gauges(registry, "cedar_kv_positions", "Positions that requests and kept prefixes hold")
          .Add({});
  prometheus::Gauge& kv_positions_max =
      gauges(registry, "cedar_kv_positions_max", "Positions that there is KV for; 0: no bound")
          .Add({});
  prometheus::Gauge& prefixes =
      gauges(registry, "cedar_prefixes", "Prefixes that are kept for requests that begin alike")
          .Add({});
  prometheus::Gauge& prefix_positions =
      gauges(registry, "cedar_prefix_positions", "Positions that kept prefixes hold").Add({});
  prometheus::Family<prometheus::Gauge>& cache_bytes = gauges(
      registry, "cedar_cache_bytes",
      "Bytes that a placed part holds, by its allocators: pages of global KV, and of them those of "
      "kept prefixes; rings of requests that run");
  prometheus::Counter& prefix_hits =
      counters(registry, "cedar_prefix_hits_total", "Requests that began with a kept prefix")
          .Add({});
  prometheus::Counter& prefix_reused =
      counters(registry, "cedar_prefix_reused_positions_total",
               "Positions of prompts that were not computed because of a kept prefix")
          .Add({});
  prometheus::Counter& prefix_evictions =
      counters(registry, "cedar_prefix_evictions_total", "Prefixes that gave their KV to others")
          .Add({});
  prometheus::Counter& draft_spans =
      counters(registry, "cedar_draft_spans_total", "Times that a step verified a request's draft")
          .Add({});
  prometheus::Family<prometheus::Counter>& drafted = counters(
      registry, "cedar_drafted_tokens_total", "Drafted tokens verified, by place in the draft");
  prometheus::Family<prometheus::Counter>& accepted = counters(
      registry, "cedar_accepted_tokens_total", "Drafted tokens accepted, by place in the draft");
  prometheus::Gauge& acceptance_length =
      gauges(
          registry, "cedar_acceptance_length",
          "Tokens that a step makes of a request whose draft it verifies, on average; 0: none yet")
          .Add({});
  prometheus::Family<prometheus::Counter>& edge_messages =
      counters(registry, "cedar_edge_messages_total", "Messages that left on an edge");
  prometheus::Family<prometheus::Counter>& edge_bytes =
      counters(registry, "cedar_edge_bytes_total", "Bytes of messages that left on an edge");
  prometheus::Family<prometheus::Counter>& edge_waits = counters(
      registry, "cedar_edge_credit_wait_seconds_total", "Time that messages waited for credit");
  prometheus::Family<prometheus::Counter>& engram_rows =
      counters(registry, "cedar_engram_rows_total", "Rows of Engram tables that a part sent");
  prometheus::Family<prometheus::Counter>& engram_steps = counters(
      registry, "cedar_engram_steps_total", "Steps that a part computed with rows of such tables");
  prometheus::Family<prometheus::Counter>& engram_late =
      counters(registry, "cedar_engram_late_steps_total",
               "Steps whose rows of Engram tables came after all else that they needed");
  prometheus::Family<prometheus::Counter>& engram_waits =
      counters(registry, "cedar_engram_wait_seconds_total",
               "Time from all else until those rows, of all such steps together");
  prometheus::Counter& recoveries =
      counters(registry, "cedar_recoveries_total", "Times that the pipeline failed and came back")
          .Add({});
  prometheus::Family<prometheus::Counter>& node_losses =
      counters(registry, "cedar_node_losses_total", "Times that a node was lost");
  prometheus::Family<prometheus::Counter>& link_losses = counters(
      registry, "cedar_link_losses_total", "Times that two nodes lost each other, not the client");
  prometheus::Family<prometheus::Gauge>& link_round_trips =
      gauges(registry, "cedar_link_round_trip_seconds",
             "Round trip of few bytes between two nodes, as it was at the start");
  prometheus::Family<prometheus::Gauge>& link_rates =
      gauges(registry, "cedar_link_bytes_per_second",
             "Bandwidth from a node to its peer, as it was at the start");
  prometheus::Family<prometheus::Counter>& draft_lengths = counters(
      registry, "cedar_draft_lengths_total", "Drafts by how many of their tokens were verified");
  prometheus::Family<prometheus::Counter>& draft_seconds =
      counters(registry, "cedar_draft_seconds_total",
               "Time of steps with drafts, as predicted and as realised");
  prometheus::Family<prometheus::Counter>& draft_plain_seconds =
      counters(registry, "cedar_draft_plain_seconds_total",
               "What their tokens would have taken plain; by the time of the same kind: the gain");
  prometheus::Gauge& up_seconds =
      gauges(registry, "cedar_up_seconds", "Time since the server was made").Add({});
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  prometheus::Family<prometheus::Gauge>& units =
      gauges(registry, "cedar_unit_up", "1: the placed part serves; 0: its node is lost");

  void show_caches(const session::unit_status& of) {
    const auto show = [&](const char* kind, std::uint64_t bytes) {
      cache_bytes.Add({{"unit", of.unit}, {"node", of.node}, {"kind", kind}})
          .Set(static_cast<double>(bytes));
    };
    show("pages", of.caches.pages);
    show("kept_pages", of.caches.kept);
    show("rings", of.caches.rings);
  }

  void raise_engram(const session::unit_status& of) {
    if (of.engram == engram_counts{}) return;
    const prometheus::Labels place{{"unit", of.unit}, {"node", of.node}};
    const auto count = [&](prometheus::Family<prometheus::Counter>& family, std::uint64_t number) {
      raise(family.Add(place), static_cast<double>(number));
    };
    if (of.engram.rows_sent > 0) count(engram_rows, of.engram.rows_sent);
    if (of.engram.steps == 0) return;
    count(engram_steps, of.engram.steps);
    count(engram_late, of.engram.late);
    raise(engram_waits.Add(place), static_cast<double>(of.engram.waited_us) * 1e-6);
  }

  void show(const session::link_status& link) {
    const prometheus::Labels ends{{"node", link.node}, {"peer", link.peer}};
    link_round_trips.Add(ends).Set(link.round_trip_seconds);
    link_rates.Add(ends).Set(link.bytes_per_second);
  }

  void raise_drafts(const session::draft_policy_report& report) {
    for (std::size_t length = 0; length < report.lengths.size(); ++length)
      raise(draft_lengths.Add({{"verified", std::to_string(length)}}),
            static_cast<double>(report.lengths[length]));
    raise(draft_seconds.Add({{"kind", "predicted"}}), report.predicted_seconds);
    raise(draft_seconds.Add({{"kind", "realised"}}), report.realised_seconds);
    raise(draft_plain_seconds.Add({{"kind", "predicted"}}), report.predicted_plain_seconds);
    raise(draft_plain_seconds.Add({{"kind", "realised"}}), report.realised_plain_seconds);
  }
};

metrics::metrics() : parts_(std::make_unique<parts>()) {}
metrics::~metrics() = default;

void metrics::answered(const std::string& route, unsigned status) {
  parts_->responses.Add({{"route", route}, {"status", std::to_string(status)}}).Increment();
}

void metrics::prompt_taken(std::uint64_t tokens) {
  parts_->prompt_tokens.Increment(static_cast<double>(tokens));
}

void metrics::token_generated() {
  parts_->generated_tokens.Increment();
}

void metrics::first_token(std::chrono::steady_clock::duration since_request) {
  parts_->first_token.Observe(seconds(since_request));
}

void metrics::generation_ended(std::chrono::steady_clock::duration since_request,
                               const std::string& how) {
  parts_->duration.Observe(seconds(since_request));
  parts_->ended.Add({{"end", how}}).Increment();
}

void metrics::show(const session::draft_totals& drafts) {
  raise(parts_->draft_spans, static_cast<double>(drafts.spans));
  for (std::size_t i = 0; i < drafts.proposed.size(); ++i) {
    const std::map<std::string, std::string> place{{"position", std::to_string(i + 1)}};
    raise(parts_->drafted.Add(place), static_cast<double>(drafts.proposed[i]));
    raise(parts_->accepted.Add(place), static_cast<double>(drafts.accepted[i]));
  }
  parts_->acceptance_length.Set(drafts.acceptance_length());
}

std::string metrics::text(const session::service_status& pipeline, const open_work& open) {
  parts_->up_seconds.Set(seconds(std::chrono::steady_clock::now() - parts_->begin));
  parts_->answers_open.Set(open.answers);
  parts_->tokens_open.Set(static_cast<double>(open.tokens));
  parts_->downloads_running.Set(open.downloads_running);
  parts_->downloads_waiting.Set(open.downloads_waiting);
  parts_->running.Set(pipeline.load.running);
  parts_->waiting.Set(pipeline.load.waiting);
  parts_->steps.Set(pipeline.load.steps_in_flight);
  parts_->kv_positions.Set(static_cast<double>(pipeline.load.kv_positions));
  parts_->kv_positions_max.Set(static_cast<double>(pipeline.kv_positions_max));
  parts_->prefixes.Set(static_cast<double>(pipeline.load.prefixes));
  parts_->prefix_positions.Set(static_cast<double>(pipeline.load.prefix_positions));
  const std::scoped_lock lock(parts_->raising);
  show(pipeline.load.drafts);
  raise(parts_->prefix_hits, static_cast<double>(pipeline.load.prefix_hits));
  raise(parts_->prefix_reused, static_cast<double>(pipeline.load.reused_positions));
  raise(parts_->prefix_evictions, static_cast<double>(pipeline.load.prefix_evictions));
  raise(parts_->recoveries, static_cast<double>(pipeline.recoveries));
  for (const auto& [node, losses] : pipeline.node_losses)
    raise(parts_->node_losses.Add({{"node", node}}), static_cast<double>(losses));
  for (const auto& [ends, losses] : pipeline.link_losses)
    raise(parts_->link_losses.Add({{"node", ends.first}, {"peer", ends.second}}),
          static_cast<double>(losses));
  for (const session::link_status& link : pipeline.links) parts_->show(link);
  for (const session::edge_status& edge : pipeline.edges) {
    raise(parts_->edge_messages.Add({{"edge", edge.edge}}), static_cast<double>(edge.messages));
    raise(parts_->edge_bytes.Add({{"edge", edge.edge}}), static_cast<double>(edge.bytes));
    raise(parts_->edge_waits.Add({{"edge", edge.edge}}),
          static_cast<double>(edge.waited_us) * 1e-6);
  }
  if (pipeline.load.policy) parts_->raise_drafts(*pipeline.load.policy);
  for (const session::unit_status& unit : pipeline.units) {
    parts_->units.Add({{"unit", unit.unit}, {"node", unit.node}}).Set(unit.up ? 1 : 0);
    parts_->show_caches(unit);
    parts_->raise_engram(unit);
  }
  return prometheus::TextSerializer().Serialize(parts_->registry.Collect());
}

}  // namespace cedar::http
