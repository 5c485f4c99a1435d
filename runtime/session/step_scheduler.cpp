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
  for (const auto* ids : {&request.prompt, &request.forced})
    if (limits_.image_token >= 0 && std::ranges::find(*ids, limits_.image_token) != ids->end())
      return fail(errc::invalid_argument,
                  "token " + std::to_string(limits_.image_token) +
                      " stands for an image, of which there is none; leave it out");
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
    next.awaits_draft = false;
    next.drafted.clear();
    active_.insert(queue_.extract(queue_.begin()));
  }
}

std::uint32_t step_scheduler::runnable_rows(const request_state& request) const noexcept {
  if (request.cancelled || request.awaits_draft) return 0;
  const auto held = std::min<std::uint64_t>(request.tokens.size(), kv_.positions(request.granules));
  // With drafted rows in flight more is scheduled than known.
  return static_cast<std::uint32_t>(held - std::min<std::uint64_t>(request.scheduled, held));
}

/// Tokens that its next span could still take: within what it asked for and the context.
std::uint32_t step_scheduler::useful_drafts(const request_state& request) const noexcept {
  if (request.cancelled || !request.ask.forced.empty()) return 0;
  // The row of the last token makes one token itself.
  const std::uint32_t wanted = request.ask.new_tokens_max - request.used.completion_tokens - 1;
  return std::min({limits_.draft_tokens_max, wanted, limits_.context_max - size32(request.tokens)});
}

/// Rows of a step that are left if every request that has rows gets one.
std::uint32_t step_scheduler::rows_beyond_one_each() const noexcept {
  const auto runnable = std::ranges::count_if(
      active_, [this](const auto& entry) { return runnable_rows(entry.second) > 0; });
  return limits_.rows_per_step - static_cast<std::uint32_t>(runnable);
}

/// A draft is worth `rows` rows at most, and KV that nobody holds.
void step_scheduler::cut_draft(request_state& request, std::uint32_t rows) {
  if (request.drafted.size() > rows) request.drafted.resize(rows);
  for (; !request.drafted.empty(); request.drafted.pop_back()) {
    const std::uint64_t needed = kv_.needed(request.tokens.size() + request.drafted.size());
    if (needed <= request.granules) return;
    if (kv_.take(needed - request.granules)) {
      request.granules = needed;
      return;
    }
  }
}

void step_scheduler::add_span(flow::step_table& table, request_id id, request_state& request,
                              std::uint32_t rows) {
  const std::uint32_t first = request.scheduled;
  flow::row_span span{id, first, rows + size32(request.drafted), 0, request.decoder_begin};
  span.logits_from = request.answered > first ? std::min(request.answered - first, rows) : 0;
  table.spans.push_back(span);
  table.tokens.insert(table.tokens.end(), request.tokens.begin() + first,
                      request.tokens.begin() + first + rows);
  table.tokens.insert(table.tokens.end(), request.drafted.begin(), request.drafted.end());
  const std::uint32_t lookback = std::min(first, limits_.lookback);
  table.lookback.insert(table.lookback.end(), request.tokens.begin() + (first - lookback),
                        request.tokens.begin() + first);
  if (first == 0 && request.ask.sampling != flow::sampling_options{})
    table.sampling.push_back({id, size32(request.ask.prompt), request.ask.sampling});
  table.want_logits = table.want_logits || request.ask.want_logits;
  for (const std::string& name : request.ask.taps)
    if (std::ranges::find(table.taps, name) == table.taps.end()) table.taps.push_back(name);
  request.scheduled += span.rows_count;
  ++request.steps_in_flight;
  request.used.encoder_rows += span.rows_count;
  request.used.decoder_rows += span.decoder_count();
  request.used.drafted_tokens += size32(request.drafted);
  request.drafted.clear();
}

std::optional<flow::step_table> step_scheduler::next_step() {
  if (in_flight_.size() >= limits_.steps_in_flight) return std::nullopt;
  admit();
  flow::step_table table;
  std::uint32_t room = limits_.rows_per_step;
  std::uint32_t room_for_drafts = rows_beyond_one_each();
  const auto add = [&](bool decoding) {
    for (auto& [id, request] : active_) {
      if (request.decodes() != decoding) continue;
      const std::uint32_t rows = std::min(runnable_rows(request), room);
      if (rows == 0) continue;
      cut_draft(request, room_for_drafts);
      const std::uint32_t drafted = size32(request.drafted);
      add_span(table, id, request, rows);
      room -= rows + drafted;
      room_for_drafts -= drafted;
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
                                                    std::span<const float> logits,
                                                    std::span<const token_id> fed) {
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
    if (event.finish != finish_reason::none) break;
    if (event.in_prompt || i + 1 == proposed.size()) continue;
    // The next row was computed for a drafted token.
    if (fed[i + 1] != event.token) break;
    ++request.used.accepted_tokens;
  }
  return events;
}

/// Of a span with `events` events: rows [0, result) stand.
std::uint32_t step_scheduler::settle(const flow::row_span& span, request_state& request,
                                     std::size_t events) {
  const std::uint32_t end = span.first_position + span.rows_count;
  // Rows are taken back only behind a wanted one.
  const std::uint32_t stand =
      events == 0 ? end
                  : span.first_position + span.logits_from + static_cast<std::uint32_t>(events);
  request.answered = std::max(request.answered, stand);
  if (stand < end) {
    request.scheduled = stand;
    const std::uint64_t needed = kv_.needed(request.tokens.size());
    if (needed < request.granules) {
      kv_.give(request.granules - needed);
      request.granules = needed;
    }
  }
  return stand;
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
  std::size_t token = 0;
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
      events = rows_of_span(span, request, std::span(proposal.tokens).subspan(row, count), logits,
                            std::span(table.tokens).subspan(token + span.logits_from, count));
    row += count;
    token += span.rows_count;
    const std::uint32_t stand = settle(span, request, events.size());
    const bool finished = !events.empty() && events.back().finish != finish_reason::none;
    outcome.verdict.commitments.push_back({span.request, stand, finished});
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
  order_drafts(outcome);
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
    const std::uint64_t needed = kv_.needed(request.tokens.size());
    if (needed <= request.granules) continue;
    const std::uint64_t missing = needed - request.granules;
    while (missing > kv_.free()) {
      const auto victim = victim_of(it->first);
      if (victim == active_.end()) return;
      preempt(victim, verdict);
    }
    if (kv_.take(missing)) request.granules += missing;
  }
}

/// For the requests of the step that go on with their last token.
void step_scheduler::order_drafts(step_outcome& outcome) {
  if (limits_.draft_tokens_max == 0) return;
  for (const flow::commitment& one : outcome.verdict.commitments) {
    const auto found = active_.find(one.request);
    if (found == active_.end()) continue;
    request_state& request = found->second;
    const bool goes_on = request.decodes() && request.scheduled + 1 == request.tokens.size();
    const std::uint32_t useful = goes_on ? useful_drafts(request) : 0;
    if (useful == 0) continue;
    request.awaits_draft = true;
    outcome.orders.push_back(
        {one.request, request.tokens.back(), size32(request.tokens) - 1, useful});
  }
}

result<void> step_scheduler::offer(const draft& offered) {
  const auto found = active_.find(offered.request);
  if (found == active_.end() || !found->second.awaits_draft) return {};
  request_state& request = found->second;
  if (offered.position + 1 < request.tokens.size()) return {};
  const auto exists = [this](token_id token) {
    return token >= 0 && static_cast<std::uint32_t>(token) < limits_.vocabulary;
  };
  if (offered.position + 1 != request.tokens.size() ||
      offered.tokens.size() > limits_.draft_tokens_max ||
      !std::ranges::all_of(offered.tokens, exists))
    return fail(errc::mismatch, "a draft for request " + std::to_string(offered.request.value) +
                                    " does not answer what was asked for");
  request.awaits_draft = false;
  request.drafted = offered.tokens;
  request.drafted.resize(std::min<std::size_t>(offered.tokens.size(), useful_drafts(request)));
  // No answer goes on with an image, and no stage could compute its row.
  request.drafted.erase(std::ranges::find(request.drafted, limits_.image_token),
                        request.drafted.end());
  return {};
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
  found->second.drafted.clear();
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
