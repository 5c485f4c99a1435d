// How the scheduler makes verdicts from proposals.
#include "runtime/session/step_scheduler.hpp"

#include <algorithm>

namespace cedar::session {

namespace {

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

/// Rows of a span beyond the tokens that are known.
std::uint32_t drafted_rows(const flow::row_span& span, std::uint32_t known) {
  const std::uint32_t end = span.first_position + span.rows_count;
  return end - std::min(end, known);
}

}  // namespace

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
  if (!request.ask.ignore_eos &&
      std::ranges::find(limits_.eos_tokens, token) != limits_.eos_tokens.end())
    return finish_reason::stop;
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
    request.kv.shrink(kv_.needed(request.tokens.size()));
  }
  return stand;
}

/// For the policy. The request's draft, if it had one, is settled by `events`.
void step_scheduler::note(settled_step& settled, const flow::row_span& span, request_state& request,
                          std::span<const row_event> events) {
  const bool decodes = span.first_position >= request.prefill_end;
  settled.decodes_only = decodes && (settled.decodes_only || settled.requests == 0);
  ++settled.requests;
  settled.rows += span.rows_count;
  settled.tokens += static_cast<std::uint32_t>(events.size());
  if (request.confidences.empty()) return;
  settled_draft& draft = settled.drafts.emplace_back();
  draft.confidences = std::exchange(request.confidences, {});
  draft.verified = span.rows_count - 1;
  draft.accepted = static_cast<std::uint32_t>(std::max<std::size_t>(events.size(), 1) - 1);
  draft.ended = events.empty() || events.back().finish != finish_reason::none;
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
  settled_step settled;
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
    const std::uint32_t known = size32(request.tokens);
    const std::uint32_t accepted_before = request.used.accepted_tokens;
    if (!request.cancelled)
      events = rows_of_span(span, request, std::span(proposal.tokens).subspan(row, count), logits,
                            std::span(table.tokens).subspan(token + span.logits_from, count));
    row += count;
    token += span.rows_count;
    if (!request.cancelled)
      drafts_.add(drafted_rows(span, known), request.used.accepted_tokens - accepted_before);
    const std::uint32_t stand = settle(span, request, events.size());
    const bool finished = !events.empty() && events.back().finish != finish_reason::none;
    outcome.verdict.commitments.push_back({span.request, stand, finished});
    outcome.events.insert(outcome.events.end(), events.begin(), events.end());
    note(settled, span, request, events);
    if (finished) {
      finished_.emplace(span.request, request.used);
      keep_prefix(request, outcome.verdict.commitments.back());
      active_.erase(span.request);
    }
  }
  in_flight_.pop_front();
  if (policy_ != nullptr) policy_->settled(std::move(settled));
  free_cancelled(outcome.verdict);
  grow(outcome.verdict);
  order_drafts(outcome);
  return outcome;
}

/// For the requests of the step that go on with their last token.
void step_scheduler::order_drafts(step_outcome& outcome) {
  if (limits_.draft_tokens_max == 0) return;
  for (const flow::commitment& one : outcome.verdict.commitments) {
    const auto found = active_.find(one.request);
    if (found == active_.end()) continue;
    const request_state& request = found->second;
    const bool goes_on =
        request.followed && request.decodes() && request.scheduled + 1 == request.tokens.size();
    const std::uint32_t useful = goes_on ? useful_drafts(request) : 0;
    if (useful == 0) continue;
    outcome.orders.push_back(
        {one.request, request.tokens.back(), size32(request.tokens) - 1, useful});
  }
  if (policy_ != nullptr &&
      !policy_->wants_drafts(static_cast<std::uint32_t>(outcome.orders.size())))
    outcome.orders.clear();
  for (const flow::draft_order& order : outcome.orders)
    active_.at(order.request).drafts_after = outcome.verdict.step;
}

void step_scheduler::free_cancelled(flow::verdict& verdict) {
  for (auto it = active_.begin(); it != active_.end();) {
    auto& [id, request] = *it;
    if (!request.cancelled || request.steps_in_flight > 0) {
      ++it;
      continue;
    }
    const auto settled = std::ranges::find(verdict.commitments, id, &flow::commitment::request);
    if (settled != verdict.commitments.end()) {
      settled->finished = true;
      keep_prefix(request, *settled);
    } else {
      keep_prefix(request, verdict.commitments.emplace_back(id, request.scheduled, true));
    }
    it = active_.erase(it);
  }
}

}  // namespace cedar::session
