#include "runtime/http/answer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace cedar::http {

namespace {

/// Characters of a well-formed text.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

}  // namespace

answer_delta answer::push(const token_score& token, std::vector<token_score> top) {
  ++tokens_;
  if (scored_) waiting_.push_back({token, std::move(top), decoded_});
  // An id beyond the tokenizer has no text; models may have more rows than tokens.
  const auto piece = decoder_.push(token.token);
  answer_delta out = take(piece ? *piece : std::string{}, false);
  release_tokens(out, false);
  return out;
}

answer_delta answer::finish() {
  answer_delta out = take(decoder_.finish(), true);
  out.text += matcher_.finish();
  released_ = decoded_;
  release_tokens(out, !stopped());
  return out;
}

answer_delta answer::take(const std::string& text, bool last) {
  answer_delta out;
  const auto add_text = [&](const std::string& more) {
    if (stopped()) return;
    decoded_ += characters(more);
    out.text += tokens_ < tokens_min_ ? more : matcher_.push(more);
  };
  if (parser_) {
    auto deltas = parser_->push(std::exchange(begun_, {}) + text);
    if (last) std::ranges::move(parser_->finish(), std::back_inserter(deltas));
    for (text::completion_delta& delta : deltas) {
      if (delta.kind == text::delta_kind::content)
        add_text(delta.text);
      else if (delta.kind == text::delta_kind::reasoning)
        out.reasoning += delta.text;
      else if (delta.kind != text::delta_kind::call_end)
        out.calls.push_back({delta.call, delta.kind == text::delta_kind::call_begin,
                             delta.name.qualified(), std::move(delta.text)});
    }
  } else {
    add_text(text);
  }
  released_ += characters(out.text);
  return out;
}

void answer::release_tokens(answer_delta& to, bool all) {
  while (!waiting_.empty() && (all || waiting_.front().offset < released_)) {
    to.tokens.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

prompt_score score_of(token_id given, std::span<const float> logits, std::uint32_t top) {
  const float own = logits[static_cast<std::size_t>(given)];
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  prompt_score out{{given, static_cast<float>(own - largest - std::log(sum))}, 1, {}};
  for (const float logit : logits) out.rank += logit > own ? 1 : 0;
  out.top = most_probable(logits, top);
  return out;
}

std::vector<token_score> most_probable(std::span<const float> logits, std::uint32_t count) {
  std::vector<token_id> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto better = [&](token_id a, token_id b) {
    const float left = logits[static_cast<std::size_t>(a)];
    const float right = logits[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  };
  count = std::min(count, static_cast<std::uint32_t>(ids.size()));
  std::partial_sort(ids.begin(), ids.begin() + count, ids.end(), better);
  if (count == 0) return {};
  const double largest = logits[static_cast<std::size_t>(ids.front())];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  std::vector<token_score> out;
  for (std::uint32_t i = 0; i < count; ++i)
    out.push_back({ids[i], static_cast<float>(logits[static_cast<std::size_t>(ids[i])] - largest -
                                              std::log(sum))});
  return out;
}

}  // namespace cedar::http
