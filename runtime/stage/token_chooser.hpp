// What the head remembers of requests that sample, and the token that each of their rows proposes.
//
// 1. A function of the step tables: options come with a request's first rows, and without penalties
//    again where its taps begin anew, for a drafter that did not listen; tokens with all of them. A
//    span that begins before what is known cuts it back to its first row, so that rejected drafts
//    and steps that are run again leave nothing behind.
// 2. Requests without options get the arg max and cost nothing. Only penalties need the tokens.
// 3. Memory is freed by forget(): the request's verdict says that it is over.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/sampling.hpp"

namespace cedar::stage {

/// The tokens of one request, counted.
class token_history {
 public:
  explicit token_history(std::uint32_t prompt_tokens) : prompt_tokens_(prompt_tokens) {}

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(tokens_.size()); }
  void push(token_id token);
  /// Forgets the tokens from position `size` on.
  void truncate(std::uint32_t size);
  const model::token_uses& uses() const noexcept { return uses_; }

 private:
  std::uint32_t prompt_tokens_;
  std::vector<token_id> tokens_;  ///< by position
  model::token_uses uses_;
};

class token_chooser {
 public:
  /// `end_tokens`: those that end an answer.
  explicit token_chooser(std::vector<token_id> end_tokens) : end_tokens_(std::move(end_tokens)) {}

  /// Takes the requests that begin in the step, and cuts histories back to the step's first rows.
  /// Errors: malformed (options that break their rules or belong to no request that begins, tokens
  /// beyond the vocabulary or after a gap); nothing has changed then.
  result<void> begin(const flow::step_table& table, std::uint32_t vocabulary);

  /// Rows of the begun step, each request's in order: `token` stands at the row.
  void add_row(request_id request, token_id token);
  /// The proposal of the row at `position` that was added last.
  token_id choose(request_id request, std::uint32_t position, std::span<const float> logits);

  /// Whether the request's tokens are counted, for its penalties.
  bool counts(request_id request) const {
    const auto known = requests_.find(request);
    return known != requests_.end() && known->second.history.has_value();
  }
  void forget(request_id request) { requests_.erase(request); }
  void clear() { requests_.clear(); }
  /// Requests that are remembered.
  std::size_t requests() const noexcept { return requests_.size(); }

 private:
  struct sampled_request {
    flow::sampling_options options;
    std::uint32_t prompt_tokens = 0;
    std::optional<token_history> history;  ///< if there are penalties
  };

  result<void> check(const flow::step_table& table, std::uint32_t vocabulary) const;

  std::vector<token_id> end_tokens_;
  std::map<request_id, sampled_request> requests_;
  std::vector<float> without_end_;  ///< logits of a row whose answer may not end yet
  model::sampling_scratch scratch_;
};

}  // namespace cedar::stage
