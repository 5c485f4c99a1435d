#include "runtime/stage/token_chooser.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "kernels/ops/selection.hpp"
#include "runtime/flow/sampling_rules.hpp"

namespace cedar::stage {

void token_history::push(token_id token) {
  model::token_use& use = uses_[token];
  ++use.total;
  if (size() >= prompt_tokens_) ++use.answer;
  tokens_.push_back(token);
}

void token_history::truncate(std::uint32_t size_wanted) {
  while (size() > size_wanted) {
    const token_id token = tokens_.back();
    tokens_.pop_back();
    const auto use = uses_.find(token);
    if (size() >= prompt_tokens_) --use->second.answer;
    if (--use->second.total == 0) uses_.erase(use);
  }
}

result<void> token_chooser::check(const flow::step_table& table, std::uint32_t vocabulary) const {
  const auto refuse = [&](request_id request, const std::string& what) {
    return fail(errc::malformed, "step " + std::to_string(table.step.value) + ": request " +
                                     std::to_string(request.value) + " " + what);
  };
  std::set<request_id> beginning;
  std::set<request_id> heard_of_anew;
  for (const flow::row_span& span : table.spans)
    if (span.begins())
      beginning.insert(span.request);
    else if (span.taps == flow::tap_use::window)
      heard_of_anew.insert(span.request);
  for (const flow::request_sampling& entry : table.sampling) {
    const bool repeated =
        !flow::has_penalties(entry.options) && heard_of_anew.erase(entry.request) == 1;
    if (!repeated && beginning.erase(entry.request) == 0)
      return refuse(entry.request, "has sampling options but does not begin here");
    if (const result<void> sane = flow::check(entry.options, vocabulary); !sane)
      return refuse(entry.request, "has bad sampling options: " + sane.error().message);
  }
  for (const flow::row_span& span : table.spans) {
    const auto known = requests_.find(span.request);
    if (span.begins() || known == requests_.end() || !known->second.history) continue;
    if (span.first_position > known->second.history->size())
      return refuse(span.request, "goes on at position " + std::to_string(span.first_position) +
                                      ", its tokens are known up to " +
                                      std::to_string(known->second.history->size()));
  }
  const auto exists = [&](token_id token) {
    return token >= 0 && static_cast<std::uint32_t>(token) < vocabulary;
  };
  const auto foreign = std::ranges::find_if_not(table.tokens, exists);
  if (foreign != table.tokens.end())
    return fail(errc::malformed, "step " + std::to_string(table.step.value) + ": token " +
                                     std::to_string(*foreign) + " is outside the vocabulary of " +
                                     std::to_string(vocabulary));
  return {};
}

result<void> token_chooser::begin(const flow::step_table& table, std::uint32_t vocabulary) {
  if (const result<void> sound = check(table, vocabulary); !sound) return sound;
  for (const flow::row_span& span : table.spans) {
    if (span.begins()) requests_.erase(span.request);
    const auto known = requests_.find(span.request);
    if (known != requests_.end() && known->second.history)
      known->second.history->truncate(span.first_position);
  }
  for (const flow::request_sampling& entry : table.sampling) {
    sampled_request& request = requests_[entry.request];
    request.options = entry.options;
    request.prompt_tokens = entry.prompt_tokens;
    if (flow::has_penalties(entry.options)) request.history.emplace(entry.prompt_tokens);
  }
  return {};
}

void token_chooser::add_row(request_id request, token_id token) {
  const auto known = requests_.find(request);
  if (known != requests_.end() && known->second.history) known->second.history->push(token);
}

token_id token_chooser::choose(request_id request, std::uint32_t position,
                               std::span<const float> logits) {
  const auto known = requests_.find(request);
  if (known == requests_.end()) return kernels::arg_max(logits);
  static const model::token_uses none;
  const sampled_request& sampled = known->second;
  if (position + 1 < std::uint64_t{sampled.prompt_tokens} + sampled.options.tokens_min) {
    without_end_.assign(logits.begin(), logits.end());
    for (const token_id end : end_tokens_)
      without_end_[static_cast<std::size_t>(end)] = -std::numeric_limits<float>::infinity();
    logits = without_end_;
  }
  return model::choose_token(logits, sampled.options,
                             sampled.history ? sampled.history->uses() : none, position + 1,
                             scratch_);
}

}  // namespace cedar::stage
