// The single authority on tokens, positions and epochs: turns requests into steps and proposals
// into verdicts.
//
// 1. A step is a table of rows over many requests. Decode rows come first, one for every answer
//    that waits for it; then prompt chunks, the oldest request first, up to rows_per_step rows in
//    all and, while answers are being generated, up to prefill_rows rows of prompts.
// 2. A request has at most one span of decode rows in flight: its last token, then what a drafter
//    thinks comes next. The rows up to the first token that the model chooses otherwise stand, the
//    rest is taken back by the verdict. Chunks of a prompt may follow each other without waiting,
//    because prompt rows are never rejected.
// 3. Steps are answered in order: accept() takes the proposal of the oldest step in flight.
// 4. Every request that was submitted ends in exactly one event with a finish reason, or in
//    fail_active() or fail_all(); or it was cancelled, and has no events from then on.
// 5. A request's decoder_begin is settled by its prompt and its mode, and is the same in all its
//    spans.
// 6. Requests in the pipeline hold no more KV than the budget. One that grows may take the KV of a
//    younger one without rows in flight: that one is freed everywhere by the next verdict, waits
//    again, and is computed anew from its tokens so far. Its events go on where they stopped.
// 7. What a request leaves may be kept (prefix_index.hpp). One that begins alike takes its global
//    KV and replays only so many rows before the end of it as its mode needs, if that saves any.
// 8. Drafts are ordered for requests that the drafter follows: from the last rows of their prompt
//    on if drafts are wanted then, else from the step on in which they are (flow::tap_use). Of
//    others it hears nothing.
// Knows no actor, no clock, no transport. Not thread-safe: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/image/plan.hpp"
#include "runtime/session/draft_policy.hpp"
#include "runtime/session/draft_totals.hpp"
#include "runtime/session/kv_budget.hpp"
#include "runtime/session/prefix_index.hpp"
#include "runtime/session/request.hpp"

namespace cedar::session {

struct scheduler_limits {
  std::uint32_t rows_per_step = 1;
  /// In the pipeline at once, never more than rows_per_step; more wait in the queue.
  std::uint32_t requests_max = 1;
  std::uint32_t queue_max = 1;  ///< waiting requests at most
  std::uint32_t context_max = 1;  ///< positions of one request, prompt included
  std::uint32_t steps_in_flight = 1;
  std::uint32_t vocabulary = 0;
  std::uint32_t lookback = 0;  ///< ids before a span that Engram addresses need
  std::vector<token_id> eos_tokens{1};  ///< each ends an answer
  token_id image_token = -1;  ///< stands for positions of images; -1: no id does
  std::uint32_t window = 1;  ///< prompt rows that walk the decoder in mode `bounded`
  /// How far a row reaches back where windows must be exact.
  std::uint32_t encoder_layers = 0;
  std::uint32_t decoder_layers = 1;
  /// Rows of prompts in one step while answers are being generated; at least 1.
  std::uint32_t prefill_rows = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t kv_granule = 1;  ///< positions that KV is given out in
  /// KV of all requests and kept prefixes together; the default is no bound.
  std::uint64_t kv_granules = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t prefix_granules = 0;  ///< of kept prefixes at most; 0: none is kept
  std::uint32_t prefix_step = 1;  ///< a prefix is used up to a multiple of so many positions
  /// Drafted tokens in one span at most; what holders of state can take back. 0: nobody drafts.
  std::uint32_t draft_tokens_max = 0;
  /// How images are planned; nothing: nobody here reads images.
  std::optional<image::image_rules> images = std::nullopt;

  /// Positions that the KV of all requests together holds; 0: no bound.
  std::uint64_t kv_positions() const noexcept {
    return kv_granules > std::numeric_limits<std::uint64_t>::max() / kv_granule
               ? 0
               : kv_granules * kv_granule;
  }
};

struct step_outcome {
  flow::verdict verdict;  ///< for every holder of state
  std::vector<row_event> events;  ///< in row order
  /// Of requests that go on, if anybody drafts and it is worth it: they have no step until offer()
  /// has the answer.
  std::vector<flow::draft_order> orders;
};

/// What the scheduler has to do, for people who look.
struct scheduler_load {
  std::uint32_t running = 0;  ///< requests that hold state in the pipeline
  std::uint32_t waiting = 0;  ///< requests in the queue
  std::uint32_t steps_in_flight = 0;
  std::uint64_t kv_positions = 0;  ///< positions that running requests and kept prefixes hold
  std::uint64_t prefixes = 0;  ///< that are kept
  std::uint64_t prefix_positions = 0;  ///< positions that they hold
  std::uint64_t prefix_hits = 0;  ///< requests that began with one, since the scheduler was made
  std::uint64_t reused_positions = 0;  ///< of their prompts, that they did not compute
  std::uint64_t prefix_evictions = 0;  ///< prefixes that were dropped for want of room
  draft_totals drafts{};
  std::optional<draft_policy_report> policy{};  ///< none: nobody chooses what is drafted

  friend bool operator==(const scheduler_load&, const scheduler_load&) = default;
};

class step_scheduler {
 public:
  /// `policy` says what is drafted and verified, and is told what became of it; it must outlive the
  /// scheduler. None: everything that fits.
  explicit step_scheduler(const scheduler_limits& limits, draft_policy* policy = nullptr)
      : limits_(limits),
        policy_(policy),
        kv_(limits.kv_granule, limits.kv_granules),
        prefixes_(limits.prefix_step, limits.prefix_granules) {}

  /// Whether submit() would ever take a request. Errors: invalid_argument (empty prompt, a token
  /// outside the vocabulary, images that are not those of the prompt (check_images()), sampling
  /// options beyond their rules), capacity
  /// (prompt and forced ids do not fit the context; prompt and answer may need more KV than there
  /// is).
  result<void> check(const generation_request& request) const;

  /// Queues requests, all or none. Errors, naming the request by its place: those of check();
  /// capacity (the queue is full).
  result<std::vector<request_id>> submit(const std::vector<generation_request>& requests);

  /// The next step, or nothing: no rows to run, or as many steps in flight as allowed, those whose
  /// drafts are awaited included. With
  /// `images` false no image begins in it: whoever embeds them has no room now, so requests stop
  /// before their next image, and all others go on.
  std::optional<flow::step_table> next_step(bool images = true);
  /// Whether the drafter has to hear of the latest step, and of its verdict: it follows a request,
  /// or is to. Always if no policy says when drafts are worth it.
  bool drafter_hears() const noexcept { return drafter_hears_; }
  /// Images whose first row is in the latest step, also again: whoever embeds images needs them
  /// before that step, and until the request ends or the image's rows are committed. At most as
  /// many as the step has rows.
  const std::vector<flow::request_image>& beginning_images() const noexcept {
    return beginning_images_;
  }

  /// Takes the proposal of the oldest step in flight. Errors: mismatch (another step, or rows that
  /// the step did not want); the scheduler is unchanged then.
  result<step_outcome> accept(const flow::proposal& proposal);

  /// The answer to an order. One that comes too late, for a request that is over or has given its
  /// KV to others meanwhile, is ignored. Errors: mismatch (another position than was asked for, too
  /// many tokens, or one outside the vocabulary); the scheduler is unchanged then.
  result<void> offer(const flow::draft& offered);

  /// Gives a request up, without further events: at once if it waits; else the next verdict frees
  /// it, or that of the last step in flight that has rows of it. Unknown and finished requests are
  /// ignored.
  void cancel(request_id request);

  /// The pipeline is broken. Gives up, and returns, the requests that it holds state of; those that
  /// wait in the queue, or that no step has had rows of yet, have lost nothing and wait on; but not
  /// those in mode `bounded` whose answer has begun with a prefix. No prefix is left. Steps go on
  /// in the epoch that begin_epoch() begins.
  std::vector<request_id> fail_active();
  /// The same for good: gives up, and returns, those that wait too.
  std::vector<request_id> fail_all();
  /// Later steps are of `epoch`. Defect: it is older than the present one, or a step is in flight.
  void begin_epoch(epoch_id epoch);

  epoch_id epoch() const noexcept { return epoch_; }
  /// The oldest step whose proposal is awaited.
  std::optional<step_id> oldest_step() const {
    return in_flight_.empty() ? std::nullopt : std::optional(in_flight_.front().step);
  }
  std::size_t steps_in_flight() const noexcept { return in_flight_.size(); }
  /// Requests that were submitted and have not finished.
  std::size_t requests() const noexcept { return active_.size() + queue_.size(); }
  scheduler_load load() const;
  /// Of a request that is active or has just finished with the last accept().
  const usage* usage_of(request_id request) const;

 private:
  struct request_state {
    generation_request ask;
    std::vector<token_id> tokens;  ///< prompt, then accepted tokens
    std::uint32_t decoder_begin = 0;  ///< first position that walks the decoder
    std::uint32_t answered = 0;  ///< rows before it have had their events, or want none
    std::uint32_t prefill_end = 0;  ///< rows before it were known at admission: they go in chunks
    std::uint32_t scheduled = 0;  ///< rows before it were put into steps since admission
    std::uint32_t begin = 0;  ///< its first row: of the replay, if it begins with a prefix
    std::uint32_t stored = 0;  ///< positions that it takes from the prefix
    /// Until its first rows are in a step; in mode `bounded`, whose bits depend on it, to the end.
    prefix_ref prefix;
    bool settled = false;  ///< bounded, and once admitted: begins alike when it is run again
    std::uint32_t exact = 0;  ///< its entries before it are those of a run from position 0
    std::uint32_t steps_in_flight = 0;  ///< that have rows of it
    kv_holding kv;  ///< from admission on for all of `tokens`
    bool followed = false;  ///< the drafter has the last rows before `scheduled`
    /// Whose verdict brought the order that is out: no step before its answer.
    std::optional<step_id> drafts_after;
    std::vector<token_id> drafted;  ///< after `tokens`; for the next step
    /// Of an answered order until the draft is settled, for the policy: of each token that could
    /// have been drafted, 0 for one that was not. Empty: no order was answered.
    std::vector<float> confidences;
    bool cancelled = false;
    usage used;

    bool decodes() const noexcept { return scheduled >= prefill_end; }
    /// Stages hold state of it.
    bool in_pipeline() const noexcept { return scheduled > begin; }
  };
  using request_map = std::map<request_id, request_state>;

  static std::uint32_t size32(const std::vector<token_id>& tokens) noexcept {
    return static_cast<std::uint32_t>(tokens.size());
  }
  std::uint32_t decoder_rows_of(const generation_request& ask) const noexcept;
  request_state state_of(const generation_request& ask) const;
  std::uint64_t rows_max(const generation_request& ask) const noexcept;
  void admit();
  bool admit(request_state& request);
  bool reserve(request_state& request, const prefix_match& match);
  void begin_with(request_state& request, const prefix_match& match);
  prefix_match match_of(request_state& request);
  std::uint32_t replay_begin(const request_state& request, std::uint32_t stored) const noexcept;
  bool progress_is_safe(const request_state& request, const prefix_match& match) const;
  bool take_kv(kv_holding& to, std::uint64_t granules);
  void keep_prefix(request_state& request, flow::commitment& ended);
  std::size_t steps_drafting() const;
  std::uint32_t runnable_rows(const request_state& request) const noexcept;
  std::uint64_t rows_before_images(const request_state& request) const noexcept;
  std::uint32_t useful_drafts(const request_state& request) const noexcept;
  bool may_have_drafts(const request_state& request) const noexcept;
  bool wants_drafts() const;
  bool is_heard_of(const request_state& request) const noexcept;
  bool any_is_heard_of() const noexcept;
  flow::tap_use follow(request_state& request, std::uint32_t rows) const noexcept;
  std::uint32_t rows_beyond_one_each() const noexcept;
  void choose_draft_lengths();
  void cut_draft(request_state& request, std::uint32_t rows);
  void add_span(flow::step_table& table, request_id id, request_state& request, std::uint32_t rows);
  std::vector<row_event> rows_of_span(const flow::row_span& span, request_state& request,
                                      std::span<const flow::proposed_token> proposed,
                                      std::span<const float> logits, std::span<const token_id> fed);
  std::uint32_t settle(const flow::row_span& span, request_state& request, std::size_t events);
  static void note(settled_step& settled, const flow::row_span& span, request_state& request,
                   std::span<const row_event> events);
  finish_reason take_token(request_state& request, token_id token);
  void grow(flow::verdict& verdict);
  void order_drafts(step_outcome& outcome);
  void free_cancelled(flow::verdict& verdict);
  request_map::iterator victim_of(request_id grower);
  void preempt(request_map::iterator victim, flow::verdict& verdict);

  scheduler_limits limits_;
  draft_policy* policy_;
  epoch_id epoch_;
  std::uint64_t next_request_ = 1;
  std::uint64_t next_step_ = 1;
  kv_budget kv_;
  request_map queue_;  ///< by arrival; those that were preempted are there again
  request_map active_;  ///< by arrival
  std::map<request_id, usage> finished_;  ///< by the last accept()
  draft_totals drafts_;
  std::deque<flow::step_table> in_flight_;
  std::vector<flow::request_image> beginning_images_;  ///< in the latest step
  bool holds_images_ = false;  ///< none begins in the step that is made
  bool drafts_wanted_ = false;  ///< after the step that is being built
  bool drafter_hears_ = false;
  prefix_index prefixes_;
  std::uint64_t prefix_hits_ = 0;
  std::uint64_t reused_positions_ = 0;
};

}  // namespace cedar::session
