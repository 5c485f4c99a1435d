#include "runtime/session/step_scheduler.hpp"

#include <algorithm>

namespace cedar::session {

std::string_view to_string(finish_reason reason) noexcept {
  switch (reason) {
    case finish_reason::none:
      return "none";
    case finish_reason::stop:
      return "stop";
    case finish_reason::length:
      return "length";
  }
  return "?";
}

std::string_view to_string(prefill_mode mode) noexcept {
  switch (mode) {
    case prefill_mode::exact:
      return "exact";
    case prefill_mode::bounded:
      return "bounded";
  }
  return "?";
}

std::optional<prefill_mode> prefill_mode_of(std::string_view name) noexcept {
  for (const prefill_mode mode : {prefill_mode::exact, prefill_mode::bounded})
    if (to_string(mode) == name) return mode;
  return std::nullopt;
}

namespace {

std::uint32_t size32(const std::vector<token_id>& tokens) {
  return static_cast<std::uint32_t>(tokens.size());
}

/// The rows are those that the step wanted, in step order, and their tokens exist.
bool are_wanted_rows(std::span<const flow::proposed_token> proposed, const flow::step_table& table,
                     std::uint32_t vocabulary) {
  if (proposed.size() != table.logits_count()) return false;
  std::size_t row = 0;
  for (const flow::row_span& span : table.spans)
    for (std::uint32_t i = span.logits_from; i < span.rows_count; ++i, ++row) {
      const flow::proposed_token& next = proposed[row];
      if (next.request != span.request || next.position != span.first_position + i ||
          next.token < 0 || static_cast<std::uint32_t>(next.token) >= vocabulary)
        return false;
    }
  return true;
}

}  // namespace

result<void> step_scheduler::check(const generation_request& request) const {
  if (request.prompt.empty())
    return fail(errc::invalid_argument, "the prompt is empty; give at least one token");
  for (const auto* ids : {&request.prompt, &request.forced})
    for (const token_id token : *ids)
      if (token < 0 || static_cast<std::uint32_t>(token) >= limits_.vocabulary)
        return fail(errc::invalid_argument, "token " + std::to_string(token) +
                                                " is outside the vocabulary of " +
                                                std::to_string(limits_.vocabulary));
  const std::size_t fixed = request.prompt.size() + request.forced.size();
  if (fixed > limits_.context_max)
    return fail(errc::capacity,
                "the prompt has " + std::to_string(fixed) + " tokens, the context holds " +
                    std::to_string(limits_.context_max) + "; shorten it or raise limits.context");
  return {};
}

result<std::vector<request_id>> step_scheduler::submit(
    const std::vector<generation_request>& requests) {
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (const result<void> fits = check(requests[i]); !fits)
      return fail(requests.size() == 1 ? fits.error()
                                       : fits.error().with("request " + std::to_string(i + 1)));
  if (queue_.size() + requests.size() > limits_.queue_max)
    return fail(errc::capacity,
                std::to_string(queue_.size()) + " requests are waiting already; try again later");
  std::vector<request_id> ids;
  for (const generation_request& request : requests) {
    ids.push_back({next_request_++});
    queue_.emplace_back(ids.back(), request);
  }
  return ids;
}

void step_scheduler::admit() {
  while (!queue_.empty() && active_.size() < limits_.requests_max) {
    auto [id, ask] = std::move(queue_.front());
    queue_.pop_front();
    active_request request;
    request.tokens = ask.prompt;
    request.used.prompt_tokens = size32(ask.prompt);
    request.used.mode = ask.mode;
    if (ask.mode == prefill_mode::bounded)
      request.decoder_begin = size32(ask.prompt) - std::min(size32(ask.prompt), limits_.window);
    request.ask = std::move(ask);
    active_.emplace(id, std::move(request));
  }
}

bool step_scheduler::wants_rows(const active_request& request) const noexcept {
  return request.scheduled < request.tokens.size();
}

void step_scheduler::add_span(flow::step_table& table, request_id id, active_request& request,
                              std::uint32_t rows) {
  const std::uint32_t first = request.scheduled;
  const std::uint32_t prompt = size32(request.ask.prompt);
  const std::uint32_t wanted_from = prompt - std::clamp(request.ask.prompt_logits, std::uint32_t{1},
                                                        prompt - request.decoder_begin);
  flow::row_span span{id, first, rows, 0, request.decoder_begin};
  span.logits_from = wanted_from > first ? std::min(wanted_from - first, rows) : 0;
  table.spans.push_back(span);
  table.tokens.insert(table.tokens.end(), request.tokens.begin() + first,
                      request.tokens.begin() + first + rows);
  const std::uint32_t lookback = std::min(first, limits_.lookback);
  table.lookback.insert(table.lookback.end(), request.tokens.begin() + (first - lookback),
                        request.tokens.begin() + first);
  table.want_logits = table.want_logits || request.ask.want_logits;
  for (const std::string& name : request.ask.taps)
    if (std::ranges::find(table.taps, name) == table.taps.end()) table.taps.push_back(name);
  request.scheduled += rows;
  request.used.encoder_rows += rows;
  request.used.decoder_rows += span.decoder_count();
}

std::optional<flow::step_table> step_scheduler::next_step() {
  if (in_flight_.size() >= limits_.steps_in_flight) return std::nullopt;
  admit();
  flow::step_table table;
  std::uint32_t room = limits_.rows_per_step;
  const auto add = [&](bool decoding) {
    for (auto& [id, request] : active_) {
      if (room == 0) return;
      const bool decodes = request.scheduled >= request.ask.prompt.size();
      if (decodes != decoding || !wants_rows(request)) continue;
      const std::uint32_t rows = std::min(size32(request.tokens) - request.scheduled, room);
      add_span(table, id, request, rows);
      room -= rows;
    }
  };
  add(true);
  add(false);
  if (table.spans.empty()) return std::nullopt;
  table.step = step_id{next_step_++};
  table.epoch = epoch_;
  in_flight_.push_back(table);
  return table;
}

finish_reason step_scheduler::take_token(active_request& request, token_id token) {
  const std::size_t done = request.tokens.size() - request.ask.prompt.size();
  if (!request.ask.forced.empty()) {
    if (done == request.ask.forced.size()) return finish_reason::length;
    request.tokens.push_back(request.ask.forced[done]);
    ++request.used.completion_tokens;
    return finish_reason::none;
  }
  if (request.ask.new_tokens_max == 0) return finish_reason::length;
  ++request.used.completion_tokens;
  if (token == limits_.eos_token && !request.ask.ignore_eos) return finish_reason::stop;
  if (request.used.completion_tokens == request.ask.new_tokens_max ||
      request.tokens.size() == limits_.context_max)
    return finish_reason::length;
  request.tokens.push_back(token);
  return finish_reason::none;
}

std::vector<row_event> step_scheduler::rows_of_span(const flow::row_span& span,
                                                    active_request& request,
                                                    std::span<const flow::proposed_token> proposed,
                                                    std::span<const float> logits) {
  std::vector<row_event> events;
  for (std::size_t i = 0; i < proposed.size(); ++i) {
    row_event event;
    event.request = span.request;
    event.position = proposed[i].position;
    event.token = proposed[i].token;
    event.log_probability = proposed[i].log_probability;
    // Others in the step may have asked for logits; an answer does not depend on them.
    if (request.ask.want_logits)
      event.logits = logits.subspan(i * limits_.vocabulary, limits_.vocabulary);
    event.in_prompt = event.position + 1 < request.ask.prompt.size();
    if (!event.in_prompt) event.finish = take_token(request, event.token);
    events.push_back(event);
  }
  return events;
}

result<step_outcome> step_scheduler::accept(const flow::proposal& proposal) {
  if (proposal.epoch != epoch_ || in_flight_.empty() || in_flight_.front().step != proposal.step)
    return fail(errc::mismatch, "a proposal for step " + std::to_string(proposal.step.value) +
                                    " does not answer the oldest step in flight");
  const flow::step_table& table = in_flight_.front();
  const std::size_t logit_floats =
      table.want_logits ? std::size_t{table.logits_count()} * limits_.vocabulary : 0;
  if (!are_wanted_rows(proposal.tokens, table, limits_.vocabulary) ||
      flow::bytes_of(proposal.logits).size() < logit_floats * sizeof(float))
    return fail(errc::mismatch, "the proposal for step " + std::to_string(proposal.step.value) +
                                    " has other rows than the step wanted");

  step_outcome outcome;
  outcome.verdict.step = table.step;
  outcome.verdict.epoch = table.epoch;
  finished_.clear();
  std::size_t row = 0;
  for (const flow::row_span& span : table.spans) {
    active_request& request = active_.at(span.request);
    const std::size_t count = span.logits_count();
    std::span<const float> logits;
    if (logit_floats > 0)
      logits = {reinterpret_cast<const float*>(proposal.logits->data()) + row * limits_.vocabulary,
                count * limits_.vocabulary};
    const auto events =
        rows_of_span(span, request, std::span(proposal.tokens).subspan(row, count), logits);
    row += count;
    const bool finished = !events.empty() && events.back().finish != finish_reason::none;
    outcome.verdict.commitments.push_back(
        {span.request, span.first_position + span.rows_count, finished});
    outcome.events.insert(outcome.events.end(), events.begin(), events.end());
    if (finished) {
      finished_.emplace(span.request, request.used);
      active_.erase(span.request);
    }
  }
  in_flight_.pop_front();
  return outcome;
}

std::vector<request_id> step_scheduler::fail_all() {
  std::vector<request_id> failed;
  for (const auto& [id, request] : active_) failed.push_back(id);
  for (const auto& [id, ask] : queue_) failed.push_back(id);
  active_.clear();
  queue_.clear();
  in_flight_.clear();
  finished_.clear();
  ++epoch_.value;
  return failed;
}

const usage* step_scheduler::usage_of(request_id request) const {
  if (const auto found = active_.find(request); found != active_.end()) return &found->second.used;
  if (const auto found = finished_.find(request); found != finished_.end()) return &found->second;
  return nullptr;
}

}  // namespace cedar::session
