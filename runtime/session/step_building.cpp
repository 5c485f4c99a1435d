// How the scheduler makes steps from requests.
#include "runtime/session/step_scheduler.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace cedar::session {

/// Steps whose drafts are on their way. They keep their place among the steps in flight: who waits
/// for it would else begin a step alone, moments before the others can go on, and requests would
/// fall apart into more and smaller steps than may be in flight.
std::size_t step_scheduler::steps_drafting() const {
  std::set<step_id> steps;
  for (const auto& [id, request] : active_)
    if (request.drafts_after && !request.cancelled) steps.insert(*request.drafts_after);
  return steps.size();
}

std::uint32_t step_scheduler::runnable_rows(const request_state& request) const noexcept {
  if (request.cancelled || request.drafts_after) return 0;
  const std::uint64_t held =
      std::min({std::uint64_t{request.tokens.size()}, kv_.positions(request.kv.granules()),
                rows_before_images(request)});
  // With drafted rows in flight more is scheduled than known.
  return static_cast<std::uint32_t>(held - std::min<std::uint64_t>(request.scheduled, held));
}

/// The end of the rows that may be scheduled before an image begins that must not begin now.
std::uint64_t step_scheduler::rows_before_images(const request_state& request) const noexcept {
  if (holds_images_)
    for (const flow::prompt_image& image : request.ask.images)
      if (image.position >= request.scheduled) return image.position;
  return std::numeric_limits<std::uint64_t>::max();
}

/// Tokens that its next span could still take: within what it asked for and the context.
std::uint32_t step_scheduler::useful_drafts(const request_state& request) const noexcept {
  if (request.cancelled || !request.ask.forced.empty()) return 0;
  // The row of the last token makes one token itself.
  const std::uint32_t wanted = request.ask.new_tokens_max - request.used.completion_tokens - 1;
  return std::min({limits_.draft_tokens_max, wanted, limits_.context_max - size32(request.tokens)});
}

/// After the next token it may still be worth a draft.
bool step_scheduler::may_have_drafts(const request_state& request) const noexcept {
  return !request.cancelled && request.ask.forced.empty() &&
         request.ask.new_tokens_max > request.used.completion_tokens + 2 &&
         request.tokens.size() + 1 < limits_.context_max;
}

/// After the next step, of the requests that have rows in it.
bool step_scheduler::wants_drafts() const {
  if (limits_.draft_tokens_max == 0) return false;
  if (policy_ == nullptr) return true;
  const auto requests = std::ranges::count_if(active_, [this](const auto& entry) {
    return runnable_rows(entry.second) > 0 && may_have_drafts(entry.second);
  });
  return requests > 0 && policy_->wants_drafts(static_cast<std::uint32_t>(requests));
}

/// The drafter has state of it. Penalties depend on tokens from the first on.
bool step_scheduler::is_heard_of(const request_state& request) const noexcept {
  return request.followed || (request.in_pipeline() && flow::has_penalties(request.ask.sampling));
}

bool step_scheduler::any_is_heard_of() const noexcept {
  return std::ranges::any_of(active_,
                             [this](const auto& entry) { return is_heard_of(entry.second); });
}

/// What the drafter takes of the next `rows` known rows, and the drafted ones after them. Of a
/// prompt the last rows are enough.
flow::tap_use step_scheduler::follow(request_state& request, std::uint32_t rows) const noexcept {
  if (limits_.draft_tokens_max == 0) return flow::tap_use::rows;
  const bool known = request.followed;
  request.followed =
      drafts_wanted_ && may_have_drafts(request) && request.scheduled + rows >= request.prefill_end;
  if (!request.followed) return flow::tap_use::none;
  return known ? flow::tap_use::rows : flow::tap_use::window;
}

/// Rows of a step that are left if every request that has rows gets one.
std::uint32_t step_scheduler::rows_beyond_one_each() const noexcept {
  const auto runnable = std::ranges::count_if(
      active_, [this](const auto& entry) { return runnable_rows(entry.second) > 0; });
  return limits_.rows_per_step - static_cast<std::uint32_t>(runnable);
}

/// Of the requests that decode in the next step.
void step_scheduler::choose_draft_lengths() {
  if (policy_ == nullptr) return;
  std::vector<request_state*> drafts;
  std::vector<std::span<const float>> confidences;
  std::uint32_t decoding = 0;
  std::uint32_t prompt_rows = 0;
  for (auto& [id, request] : active_) {
    const std::uint32_t rows = runnable_rows(request);
    if (rows == 0) continue;
    if (!request.decodes()) {
      prompt_rows += rows;
      continue;
    }
    ++decoding;
    if (request.confidences.empty()) continue;
    drafts.push_back(&request);
    confidences.emplace_back(request.confidences);
  }
  if (drafts.empty()) return;
  const std::uint32_t rows =
      decoding + std::min({prompt_rows, limits_.prefill_rows, limits_.rows_per_step - decoding});
  const std::vector<std::uint32_t> lengths = policy_->lengths(confidences, decoding, rows);
  for (std::size_t i = 0; i < drafts.size(); ++i)
    if (drafts[i]->drafted.size() > lengths[i]) drafts[i]->drafted.resize(lengths[i]);
}

/// A draft is worth `rows` rows at most, and KV that nobody holds.
void step_scheduler::cut_draft(request_state& request, std::uint32_t rows) {
  if (request.drafted.size() > rows) request.drafted.resize(rows);
  for (; !request.drafted.empty(); request.drafted.pop_back())
    if (take_kv(request.kv, kv_.needed(request.tokens.size() + request.drafted.size()))) return;
}

void step_scheduler::add_span(flow::step_table& table, request_id id, request_state& request,
                              std::uint32_t rows) {
  const std::uint32_t first = request.scheduled;
  flow::row_span span{id, first, rows + size32(request.drafted), 0};
  span.decoder_begin = std::max(request.decoder_begin, request.begin);
  span.begin = request.begin;
  span.stored = request.stored;
  span.taps = follow(request, rows);
  span.logits_from = request.answered > first ? std::min(request.answered - first, rows) : 0;
  table.spans.push_back(span);
  table.tokens.insert(table.tokens.end(), request.tokens.begin() + first,
                      request.tokens.begin() + first + rows);
  table.tokens.insert(table.tokens.end(), request.drafted.begin(), request.drafted.end());
  const std::uint32_t lookback = std::min(first, limits_.lookback);
  table.lookback.insert(table.lookback.end(), request.tokens.begin() + (first - lookback),
                        request.tokens.begin() + first);
  for (const flow::prompt_image& image : request.ask.images)
    if (image.position >= first && image.position < first + rows)
      beginning_images_.push_back({id, image});
  const bool tells_options = span.begins() || (span.taps == flow::tap_use::window &&
                                               !flow::has_penalties(request.ask.sampling));
  if (tells_options && request.ask.sampling != flow::sampling_options{})
    table.sampling.push_back({id, size32(request.ask.prompt), request.ask.sampling});
  if (span.begins() && request.prefix) {
    table.prefixes.push_back({id, request.prefix->id});
    if (!request.settled) request.prefix.reset();
  }
  table.want_logits = table.want_logits || request.ask.want_logits;
  for (const std::string& name : request.ask.taps)
    if (std::ranges::find(table.taps, name) == table.taps.end()) table.taps.push_back(name);
  request.scheduled += span.rows_count;
  ++request.steps_in_flight;
  request.used.encoder_rows += span.rows_count;
  request.used.replayed_rows += std::min(request.stored - std::min(first, request.stored), rows);
  request.used.decoder_rows += span.decoder_count();
  request.used.drafted_tokens += size32(request.drafted);
  request.drafted.clear();
}

std::optional<flow::step_table> step_scheduler::next_step(bool images) {
  holds_images_ = !images;
  if (in_flight_.size() + steps_drafting() >= limits_.steps_in_flight) return std::nullopt;
  admit();
  beginning_images_.clear();
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
  choose_draft_lengths();
  drafts_wanted_ = wants_drafts();
  const bool heard_of_before = any_is_heard_of();
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
  drafter_hears_ =
      limits_.draft_tokens_max > 0 && (policy_ == nullptr || heard_of_before || any_is_heard_of());
  table.step = step_id{next_step_++};
  table.epoch = epoch_;
  table.dropped = prefixes_.take_dropped();
  in_flight_.push_back(table);
  return table;
}

}  // namespace cedar::session
