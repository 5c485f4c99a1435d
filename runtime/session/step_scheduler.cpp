#include "runtime/session/step_scheduler.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"
#include "runtime/flow/sampling_rules.hpp"

namespace cedar::session {

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
  if (const result<void> sane = flow::check(request.sampling, limits_.vocabulary); !sane)
    return sane;
  const std::size_t fixed = request.prompt.size() + request.forced.size();
  if (fixed > limits_.context_max)
    return fail(errc::capacity,
                "the prompt has " + std::to_string(fixed) + " tokens, the context holds " +
                    std::to_string(limits_.context_max) + "; shorten it or raise limits.context");
  // The last token of an answer has no row.
  const std::size_t answer =
      request.forced.empty() ? std::max(request.new_tokens_max, 1U) - 1 : request.forced.size();
  const std::size_t rows =
      std::min<std::size_t>(request.prompt.size() + answer, limits_.context_max);
  if (kv_.needed(rows) > kv_.total())
    return fail(errc::capacity, "prompt and answer may take " + std::to_string(rows) +
                                    " positions, the KV of all requests holds " +
                                    std::to_string(kv_.positions(kv_.total())) +
                                    "; ask for fewer tokens or raise limits.kv_positions");
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
    queue_.emplace(ids.back(), state_of(request));
  }
  return ids;
}

step_scheduler::request_state step_scheduler::state_of(const generation_request& ask) const {
  request_state state;
  const std::uint32_t prompt = size32(ask.prompt);
  state.tokens = ask.prompt;
  state.used.prompt_tokens = prompt;
  state.used.mode = ask.mode;
  if (ask.mode == prefill_mode::bounded)
    state.decoder_begin = prompt - std::min(prompt, limits_.window);
  state.answered =
      prompt - std::clamp(ask.prompt_logits, std::uint32_t{1}, prompt - state.decoder_begin);
  state.ask = ask;
  return state;
}

/// Strictly in order, so that a long prompt is not overtaken for ever. More requests than rows in a
/// step would only wait, and hold KV meanwhile.
void step_scheduler::admit() {
  const std::uint32_t at_once = std::min(limits_.requests_max, limits_.rows_per_step);
  while (!queue_.empty() && active_.size() < at_once) {
    request_state& next = queue_.begin()->second;
    const std::uint64_t needed = kv_.needed(next.tokens.size());
    if (!kv_.take(needed)) return;
    next.granules = needed;
    next.prefill_end = size32(next.tokens);
    next.scheduled = 0;
    active_.insert(queue_.extract(queue_.begin()));
  }
}

std::uint32_t step_scheduler::runnable_rows(const request_state& request) const noexcept {
  if (request.cancelled) return 0;
  const auto held = std::min<std::uint64_t>(request.tokens.size(), kv_.positions(request.granules));
  return static_cast<std::uint32_t>(held) - request.scheduled;
}

void step_scheduler::add_span(flow::step_table& table, request_id id, request_state& request,
                              std::uint32_t rows) {
  const std::uint32_t first = request.scheduled;
  flow::row_span span{id, first, rows, 0, request.decoder_begin};
  span.logits_from = request.answered > first ? std::min(request.answered - first, rows) : 0;
  table.spans.push_back(span);
  table.tokens.insert(table.tokens.end(), request.tokens.begin() + first,
                      request.tokens.begin() + first + rows);
  const std::uint32_t lookback = std::min(first, limits_.lookback);
  table.lookback.insert(table.lookback.end(), request.tokens.begin() + (first - lookback),
                        request.tokens.begin() + first);
  if (first == 0 && request.ask.sampling != flow::sampling_options{})
    table.sampling.push_back({id, size32(request.ask.prompt), request.ask.sampling});
  table.want_logits = table.want_logits || request.ask.want_logits;
  for (const std::string& name : request.ask.taps)
    if (std::ranges::find(table.taps, name) == table.taps.end()) table.taps.push_back(name);
  request.scheduled += rows;
  ++request.steps_in_flight;
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
      if (request.decodes() != decoding) continue;
      const std::uint32_t rows = std::min(runnable_rows(request), room);
      if (rows == 0) continue;
      add_span(table, id, request, rows);
      room -= rows;
    }
  };
  // Before add(): a prompt whose last chunk goes into this step has no answer yet.
  const bool answering =
      std::ranges::any_of(active_, [](const auto& entry) { return entry.second.decodes(); });
  add(true);
  if (answering) room = std::min(room, std::max(limits_.prefill_rows, std::uint32_t{1}));
  add(false);
  // Somebody's verdict must free a cancelled request: its own if there is no other.
  const auto idle =
      std::ranges::find_if(active_, [](const auto& entry) { return entry.second.cancelled; });
  if (table.spans.empty() && in_flight_.empty() && idle != active_.end())
    add_span(table, idle->first, idle->second, 1);
  if (table.spans.empty()) return std::nullopt;
  table.step = step_id{next_step_++};
  table.epoch = epoch_;
  in_flight_.push_back(table);
  return table;
}

finish_reason step_scheduler::take_token(request_state& request, token_id token) {
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
                                                    request_state& request,
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
    request_state& request = active_.at(span.request);
    const std::size_t count = span.logits_count();
    std::span<const float> logits;
    if (logit_floats > 0)
      logits = {reinterpret_cast<const float*>(proposal.logits->data()) + row * limits_.vocabulary,
                count * limits_.vocabulary};
    --request.steps_in_flight;
    std::vector<row_event> events;
    if (!request.cancelled)
      events = rows_of_span(span, request, std::span(proposal.tokens).subspan(row, count), logits);
    row += count;
    request.answered = std::max(request.answered, span.first_position + span.rows_count);
    const bool finished = !events.empty() && events.back().finish != finish_reason::none;
    outcome.verdict.commitments.push_back(
        {span.request, span.first_position + span.rows_count, finished});
    outcome.events.insert(outcome.events.end(), events.begin(), events.end());
    if (finished) {
      finished_.emplace(span.request, request.used);
      kv_.give(request.granules);
      active_.erase(span.request);
    }
  }
  in_flight_.pop_front();
  free_cancelled(outcome.verdict);
  grow(outcome.verdict);
  return outcome;
}

/// The youngest request after `grower` that no step in flight has rows of; active_.end() if none.
step_scheduler::request_map::iterator step_scheduler::victim_of(request_id grower) {
  for (auto it = active_.end(); it != active_.begin();) {
    --it;
    if (!(grower < it->first)) break;
    if (it->second.steps_in_flight == 0) return it;
  }
  return active_.end();
}

void step_scheduler::preempt(request_map::iterator victim, flow::verdict& verdict) {
  const request_id id = victim->first;
  request_state& request = victim->second;
  const auto settled = std::ranges::find(verdict.commitments, id, &flow::commitment::request);
  if (settled != verdict.commitments.end())
    settled->finished = true;
  else if (request.scheduled > 0)
    verdict.commitments.push_back({id, request.scheduled, true});
  if (request.scheduled > 0) ++request.used.preemptions;
  kv_.give(request.granules);
  request.granules = 0;
  queue_.insert(active_.extract(victim));
}

/// Gives KV to the requests whose last token has none yet, the oldest first. Whoever gets none
/// waits for the next verdict. The oldest request with no step in flight always gets it: all others
/// could be preempted, and submit() refused what is larger than the budget.
void step_scheduler::grow(flow::verdict& verdict) {
  for (auto it = active_.begin(); it != active_.end(); ++it) {
    request_state& request = it->second;
    const std::uint64_t missing = kv_.needed(request.tokens.size()) - request.granules;
    while (missing > kv_.free()) {
      const auto victim = victim_of(it->first);
      if (victim == active_.end()) return;
      preempt(victim, verdict);
    }
    if (kv_.take(missing)) request.granules += missing;
  }
}

void step_scheduler::free_cancelled(flow::verdict& verdict) {
  for (auto it = active_.begin(); it != active_.end();) {
    const auto& [id, request] = *it;
    if (!request.cancelled || request.steps_in_flight > 0) {
      ++it;
      continue;
    }
    const auto settled = std::ranges::find(verdict.commitments, id, &flow::commitment::request);
    if (settled != verdict.commitments.end())
      settled->finished = true;
    else
      verdict.commitments.push_back({id, request.scheduled, true});
    kv_.give(request.granules);
    it = active_.erase(it);
  }
}

void step_scheduler::cancel(request_id request) {
  queue_.erase(request);
  const auto found = active_.find(request);
  if (found == active_.end()) return;
  found->second.cancelled = true;
  if (found->second.scheduled > 0) return;
  kv_.give(found->second.granules);  // no stage has heard of it
  active_.erase(found);
}

scheduler_load step_scheduler::load() const {
  scheduler_load out;
  out.running = static_cast<std::uint32_t>(active_.size());
  out.waiting = static_cast<std::uint32_t>(queue_.size());
  out.steps_in_flight = static_cast<std::uint32_t>(in_flight_.size());
  for (const auto& [id, request] : active_) out.kv_positions += kv_.positions(request.granules);
  return out;
}

std::vector<request_id> step_scheduler::fail_active() {
  std::vector<request_id> failed;
  while (!active_.empty()) {
    auto given_up = active_.extract(active_.begin());
    request_state& request = given_up.mapped();
    request.granules = 0;
    if (request.scheduled == 0)
      queue_.insert(std::move(given_up));
    else if (!request.cancelled)
      failed.push_back(given_up.key());
  }
  in_flight_.clear();
  finished_.clear();
  kv_.give_all();
  return failed;
}

std::vector<request_id> step_scheduler::fail_all() {
  std::vector<request_id> failed = fail_active();
  for (const auto& [id, request] : queue_) failed.push_back(id);
  queue_.clear();
  return failed;
}

void step_scheduler::begin_epoch(epoch_id epoch) {
  CEDAR_REQUIRE(epoch >= epoch_, "epochs only rise");
  CEDAR_REQUIRE(in_flight_.empty(), "a step of the old epoch is in flight");
  epoch_ = epoch;
}

const usage* step_scheduler::usage_of(request_id request) const {
  if (const auto found = active_.find(request); found != active_.end()) return &found->second.used;
  if (const auto found = finished_.find(request); found != finished_.end()) return &found->second;
  return nullptr;
}

}  // namespace cedar::session
