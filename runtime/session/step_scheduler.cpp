#include "runtime/session/step_scheduler.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"
#include "runtime/flow/sampling_rules.hpp"
#include "runtime/session/halo.hpp"
#include "runtime/session/prompt_images.hpp"

namespace cedar::session {

result<void> step_scheduler::check(const generation_request& request) const {
  if (request.prompt.empty())
    return fail(errc::invalid_argument, "the prompt is empty; give at least one token");
  for (const auto* ids : {&request.prompt, &request.forced})
    for (const token_id token : *ids)
      if (token < 0 || static_cast<std::uint32_t>(token) >= limits_.vocabulary)
        return fail(errc::invalid_argument, "token " + std::to_string(token) +
                                                " is outside the vocabulary of " +
                                                std::to_string(limits_.vocabulary));
  for (const result<void>& images :
       {check_images(request.prompt, request.images, limits_.image_token, limits_.images),
        check_images(request.forced, {}, limits_.image_token, limits_.images)})
    if (!images) return images;
  if (const result<void> sane = flow::check(request.sampling, limits_.vocabulary); !sane)
    return sane;
  const std::size_t fixed = request.prompt.size() + request.forced.size();
  if (fixed > limits_.context_max)
    return fail(errc::capacity,
                "the prompt has " + std::to_string(fixed) + " tokens, the context holds " +
                    std::to_string(limits_.context_max) + "; shorten it or raise limits.context");
  const std::uint64_t rows = rows_max(request);
  if (kv_.needed(rows) > kv_.total())
    return fail(errc::capacity, "prompt and answer may take " + std::to_string(rows) +
                                    " positions, the KV of all requests holds " +
                                    std::to_string(kv_.positions(kv_.total())) +
                                    "; ask for fewer tokens or raise limits.kv_positions");
  return {};
}

/// Rows of prompt and answer at most.
std::uint64_t step_scheduler::rows_max(const generation_request& ask) const noexcept {
  // The last token of an answer has no row.
  const std::uint64_t answer =
      ask.forced.empty() ? std::max(ask.new_tokens_max, 1U) - 1 : ask.forced.size();
  return std::min<std::uint64_t>(ask.prompt.size() + answer, limits_.context_max);
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

/// Rows of the prompt that walk the decoder. In mode `halo` the logits of every wanted row are
/// those of `exact`, not of the last one alone.
std::uint32_t step_scheduler::decoder_rows_of(const generation_request& ask) const noexcept {
  const std::uint64_t prompt = ask.prompt.size();
  std::uint64_t rows = prompt;
  if (ask.mode == prefill_mode::bounded) rows = limits_.window;
  if (ask.mode == prefill_mode::halo)
    rows = halo_rows(limits_.window, limits_.decoder_layers) + std::max(ask.prompt_logits, 1U) - 1;
  return static_cast<std::uint32_t>(std::min(rows, prompt));
}

step_scheduler::request_state step_scheduler::state_of(const generation_request& ask) const {
  request_state state;
  const std::uint32_t prompt = size32(ask.prompt);
  state.tokens = ask.prompt;
  state.used.prompt_tokens = prompt;
  for (const flow::prompt_image& image : ask.images) state.used.image_tokens += image.rows_count;
  state.used.mode = ask.mode;
  state.decoder_begin = prompt - decoder_rows_of(ask);
  state.answered =
      prompt - std::clamp(ask.prompt_logits, std::uint32_t{1}, prompt - state.decoder_begin);
  state.ask = ask;
  return state;
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
  else if (request.in_pipeline())
    verdict.commitments.push_back({id, request.scheduled, true});
  if (request.in_pipeline()) ++request.used.preemptions;
  request.kv.shrink(0);
  if (request.used.preemptions == 0) request.settled = false;
  if (!request.settled) request.prefix.reset();
  queue_.insert(active_.extract(victim));
}

/// Gives KV to the requests whose last token has none yet, the oldest first. Whoever gets none
/// waits for the next verdict. The oldest request with no step in flight always gets it: all others
/// could be preempted, and submit() refused what is larger than the budget.
void step_scheduler::grow(flow::verdict& verdict) {
  for (auto it = active_.begin(); it != active_.end(); ++it) {
    request_state& request = it->second;
    while (!take_kv(request.kv, kv_.needed(request.tokens.size()))) {
      const auto victim = victim_of(it->first);
      if (victim == active_.end()) return;
      preempt(victim, verdict);
    }
  }
}

result<void> step_scheduler::offer(const flow::draft& offered) {
  const auto found = active_.find(offered.request);
  if (found == active_.end() || !found->second.drafts_after) return {};
  request_state& request = found->second;
  if (offered.position + 1 < request.tokens.size()) return {};
  const auto exists = [this](token_id token) {
    return token >= 0 && static_cast<std::uint32_t>(token) < limits_.vocabulary;
  };
  if (offered.position + 1 != request.tokens.size() ||
      offered.tokens.size() > limits_.draft_tokens_max ||
      (!offered.confidences.empty() && offered.confidences.size() != offered.tokens.size()) ||
      !std::ranges::all_of(offered.tokens, exists))
    return fail(errc::mismatch, "a draft for request " + std::to_string(offered.request.value) +
                                    " does not answer what was asked for");
  request.drafts_after.reset();
  request.drafted = offered.tokens;
  const std::size_t useful = useful_drafts(request);
  request.drafted.resize(std::min(offered.tokens.size(), useful));
  request.confidences = offered.confidences;
  if (offered.confidences.empty())
    request.confidences.resize(offered.tokens.size(), unknown_confidence);
  request.confidences.resize(useful, 0);
  // No answer goes on with an image, and no stage could compute its row.
  request.drafted.erase(std::ranges::find(request.drafted, limits_.image_token),
                        request.drafted.end());
  return {};
}

void step_scheduler::cancel(request_id request) {
  queue_.erase(request);
  const auto found = active_.find(request);
  if (found == active_.end()) return;
  found->second.cancelled = true;
  found->second.drafted.clear();
  found->second.confidences.clear();
  if (!found->second.in_pipeline()) active_.erase(found);
}

scheduler_load step_scheduler::load() const {
  scheduler_load out;
  out.running = static_cast<std::uint32_t>(active_.size());
  out.waiting = static_cast<std::uint32_t>(queue_.size());
  out.steps_in_flight = static_cast<std::uint32_t>(in_flight_.size());
  out.drafts = drafts_;
  if (policy_ != nullptr) out.policy = policy_->report();
  out.kv_positions = kv_.positions(kv_.used());
  out.prefixes = prefixes_.size();
  out.prefix_positions = kv_.positions(prefixes_.granules());
  out.prefix_hits = prefix_hits_;
  out.reused_positions = reused_positions_;
  out.prefix_evictions = prefixes_.evictions();
  return out;
}

std::vector<request_id> step_scheduler::fail_active() {
  std::vector<request_id> failed;
  while (!active_.empty()) {
    auto given_up = active_.extract(active_.begin());
    if (!given_up.mapped().in_pipeline())
      queue_.insert(std::move(given_up));
    else if (!given_up.mapped().cancelled)
      failed.push_back(given_up.key());
  }
  for (auto it = queue_.begin(); it != queue_.end();) {
    request_state& waiting = it->second;
    waiting.kv.shrink(0);
    // Its answer so far depends on the prefix, which is lost.
    const bool lost = waiting.prefix != nullptr && waiting.used.preemptions > 0;
    if (lost) failed.push_back(it->first);
    waiting.prefix.reset();
    if (waiting.used.preemptions == 0) waiting.settled = false;
    it = lost ? queue_.erase(it) : std::next(it);
  }
  in_flight_.clear();
  finished_.clear();
  prefixes_.clear();
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
