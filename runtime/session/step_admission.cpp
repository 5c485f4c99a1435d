// Which requests the scheduler lets into the pipeline, and what of kept prefixes they begin with.
#include <algorithm>

#include "runtime/session/halo.hpp"
#include "runtime/session/step_scheduler.hpp"

namespace cedar::session {

/// Strictly in order, so that a long prompt is not overtaken for ever. More requests than rows in a
/// step would only wait, and hold KV meanwhile.
void step_scheduler::admit() {
  const std::uint32_t at_once = std::min(limits_.requests_max, limits_.rows_per_step);
  while (!queue_.empty() && active_.size() < at_once) {
    if (!admit(queue_.begin()->second)) return;
    active_.insert(queue_.extract(queue_.begin()));
  }
}

bool step_scheduler::admit(request_state& request) {
  prefix_match match = match_of(request);
  if (!progress_is_safe(request, match)) {
    if (!match.prefix || request.settled) return false;
    match = {};
    if (!progress_is_safe(request, match)) return false;
  }
  if (!reserve(request, match)) {
    // What it would begin with may be in its way.
    if (!match.prefix || request.settled) return false;
    match = {};
    if (!reserve(request, match)) return false;
  }
  begin_with(request, match);
  return true;
}

/// What a request could begin with so that it has fewer rows to compute.
prefix_match step_scheduler::match_of(request_state& request) {
  if (request.settled) return {request.prefix, request.prefix ? request.stored : 0};
  // The head must see every token that is punished, a probe every row.
  if (prefixes_.empty() || flow::has_penalties(request.ask.sampling) || !request.ask.taps.empty())
    return {};
  const bool exact = request.ask.mode != prefill_mode::bounded;
  const std::uint32_t last = size32(request.tokens) - 1;
  const std::uint32_t most = exact ? std::min(request.answered, last) : last;
  const prefix_match match = prefixes_.longest(std::span(request.tokens).first(most), exact);
  request.used.matched_tokens =
      std::max(request.used.matched_tokens, std::min(match.positions, request.used.prompt_tokens));
  return match.prefix && replay_begin(request, match.positions) > 0 ? match : prefix_match{};
}

/// The first row to be replayed before the end of a prefix of `stored` positions, so that every
/// window is as the mode asks; 0: all of them.
std::uint32_t step_scheduler::replay_begin(const request_state& request,
                                           std::uint32_t stored) const noexcept {
  std::uint64_t end = stored;
  std::uint64_t rows = limits_.window;
  if (request.ask.mode == prefill_mode::exact) {
    rows = halo_rows(limits_.window, limits_.encoder_layers + limits_.decoder_layers);
  } else if (request.ask.mode == prefill_mode::halo) {
    // Rows that enter the decoder come out of an encoder whose windows are exact.
    end = std::min(stored, request.decoder_begin);
    rows = halo_rows(limits_.window, limits_.encoder_layers);
  }
  return static_cast<std::uint32_t>(end - std::min(end, rows));
}

/// Whoever is oldest must be able to get all the KV that it may ever need, by preempting others. In
/// mode `bounded` those others still hold the prefixes that their bits depend on.
bool step_scheduler::progress_is_safe(const request_state& request,
                                      const prefix_match& match) const {
  if (request.used.preemptions > 0) return true;  // it was counted when it came
  const bool keeps_hold = request.ask.mode == prefill_mode::bounded;
  const std::uint64_t held = prefixes_.granules_held(match, keeps_hold);
  if (held == 0) return true;
  std::uint64_t most = kv_.needed(rows_max(request.ask));
  for (const auto* requests : {&active_, &queue_})
    for (const auto& [id, other] : *requests)
      if (requests == &active_ || other.used.preemptions > 0)
        most = std::max(most, kv_.needed(rows_max(other.ask)));
  return held <= kv_.total() && most <= kv_.total() - held;
}

/// Takes KV for all tokens of the request, of which the match has some.
bool step_scheduler::reserve(request_state& request, const prefix_match& match) {
  if (match.prefix) request.kv = match.prefix->kv.first(match.positions / limits_.kv_granule);
  if (take_kv(request.kv, kv_.needed(request.tokens.size()))) return true;
  request.kv.shrink(0);
  return false;
}

/// Takes free KV, or that of kept prefixes that nobody uses.
bool step_scheduler::take_kv(kv_holding& to, std::uint64_t granules) {
  while (!kv_.extend(to, granules))
    if (!prefixes_.drop_one()) return false;
  return true;
}

void step_scheduler::begin_with(request_state& request, const prefix_match& match) {
  const bool bounded = request.ask.mode == prefill_mode::bounded;
  request.prefix = match.prefix;
  request.stored = match.positions;
  request.begin = match.prefix ? replay_begin(request, match.positions) : 0;
  request.exact = limits_.context_max;
  if (match.prefix && bounded) request.exact = std::min(match.prefix->exact, match.positions);
  if (match.prefix && request.used.encoder_rows == 0) {
    request.used.cached_tokens = match.positions;
    ++prefix_hits_;
    reused_positions_ += request.begin;
  }
  request.settled = bounded;
  request.prefill_end = size32(request.tokens);
  request.scheduled = request.begin;
  request.followed = false;
  request.drafts_after.reset();
  request.drafted.clear();
  request.confidences.clear();
}

/// Of a request that is over: what may serve others. Too little to spare anybody a row is not kept.
void step_scheduler::keep_prefix(request_state& request, flow::commitment& ended) {
  request.prefix.reset();  // what it began with may be a part of what it leaves
  const auto image = std::ranges::find(request.tokens, limits_.image_token);
  std::uint32_t positions =
      std::min(ended.committed, static_cast<std::uint32_t>(image - request.tokens.begin()));
  positions -= positions % limits_.prefix_step;
  if (limits_.prefix_granules == 0 || positions <= limits_.window) return;
  const std::vector<token_id> tokens(request.tokens.begin(), request.tokens.begin() + positions);
  ended.kept = prefixes_.keep(tokens, std::min(positions, request.exact),
                              request.kv.first(kv_.needed(positions)));
  if (ended.kept != prefix_id{}) ended.kept_positions = positions;
}

}  // namespace cedar::session
