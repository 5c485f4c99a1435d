#include "runtime/http/generation.hpp"

#include <algorithm>

namespace cedar::http {

generation::generation(generation_setting setting, std::unique_ptr<admission::place> place,
                       generation_order order, generation_listener listener)
    : place_(std::move(place)),
      setting_(std::move(setting)),
      order_(std::move(order)),
      listener_(std::move(listener)) {}

void generation::start() {
  setting_.counters.prompt_taken(order_.prompt_tokens);
  choices_.reserve(order_.requests.size());
  for (std::size_t i = 0; i < order_.requests.size(); ++i) {
    const session::generation_request& request = order_.requests[i];
    choice& made = choices_.emplace_back(answer(
        setting_.vocabulary,
        {order_.stops, order_.scored, order_.chat, order_.begun, request.sampling.tokens_min}));
    if (order_.prompt_logprobs && request.sampling.choice == 0) {
      made.prompt = request.prompt;
      made.whole.prompt.resize(request.prompt.size());
    }
    made.whole.index = static_cast<std::uint32_t>(i);
    made.whole.first = true;
    made.whole.scored = order_.scored;
  }
  for (std::size_t i = 0; i < choices_.size(); ++i)
    choices_[i].request = setting_.service.submit(std::move(order_.requests[i]), events_of(i));
}

session::request_events generation::events_of(std::size_t index) {
  // SHARED: with the pipeline's events, until the request has ended.
  const auto self = shared_from_this();
  return {[self, index](const session::row_event& row) {
            if (row.in_prompt) return self->score_prompt(index, row);
            // The row's logits are gone when this returns.
            std::vector<token_score> top;
            if (!row.logits.empty()) top = most_probable(row.logits, self->order_.top_logprobs);
            session::row_event kept = row;
            kept.logits = {};
            self->setting_.post([self, index, kept, top = std::move(top)]() mutable {
              self->take_row(index, kept, std::move(top));
            });
          },
          [self, index](const session::usage& used) {
            self->setting_.post([self, index, used] { self->take_end(index, used); });
          },
          [self, index](const error& what) {
            self->setting_.post([self, index, what] { self->take_failure(index, what); });
          }};
}

void generation::score_prompt(std::size_t index, const session::row_event& row) {
  const std::vector<token_id>& prompt = choices_[index].prompt;
  const std::size_t position = std::size_t{row.position} + 1;
  if (position >= prompt.size() || row.logits.empty()) return;
  setting_.post(
      [self = shared_from_this(), index, position,
       score = score_of(prompt[position], row.logits, *order_.prompt_logprobs)]() mutable {
        self->choices_[index].whole.prompt[position] = std::move(score);
      });
}

void generation::take_row(std::size_t index, const session::row_event& row,
                          std::vector<token_score> top) {
  choice& of = choices_[index];
  if (!listener_ || of.over) return;
  if (!std::exchange(any_token_, true))
    setting_.counters.first_token(std::chrono::steady_clock::now() - begin_);
  setting_.counters.token_generated();
  if (row.finish != session::finish_reason::none) of.finish_reason = to_string(row.finish);
  // The end of sequence has no text.
  if (row.finish == session::finish_reason::stop) return;
  answer_delta news = of.text.push({row.token, row.log_probability}, std::move(top));
  of.has_calls = of.has_calls || !news.calls.empty();
  if (!of.text.stopped()) return deliver(index, std::move(news), {});
  setting_.service.cancel(of.request);
  of.tokens = of.text.tokens();
  of.over = true;
  deliver(index, std::move(news), "stop");
  finish();
}

void generation::take_end(std::size_t index, const session::usage& used) {
  choice& of = choices_[index];
  of.ended = true;
  cached_tokens_ = std::max(cached_tokens_, used.cached_tokens);
  if (!listener_ || of.over) return;
  of.tokens = used.completion_tokens;
  of.drafted_tokens = used.drafted_tokens;
  of.accepted_tokens = used.accepted_tokens;
  of.over = true;
  answer_delta rest = of.text.finish();
  of.has_calls = of.has_calls || !rest.calls.empty();
  if (of.text.stopped()) of.finish_reason = "stop";
  if (of.has_calls && of.finish_reason == "stop") of.finish_reason = "tool_calls";
  deliver(index, std::move(rest), of.finish_reason);
  finish();
}

void generation::take_failure(std::size_t index, const error& what) {
  choice& of = choices_[index];
  of.ended = true;
  if (!listener_ || of.over) return;
  give_up(api_error_of(what), "failed");
}

void generation::expire(std::chrono::milliseconds limit) {
  if (!listener_) return;
  give_up(deadline_exceeded(limit), "expired");
}

void generation::give_up(const api_error& told, const std::string& how) {
  const generation_listener listener = std::move(*listener_);
  listener_.reset();
  cancel_running();
  ended(how);
  if (any_sent_)
    listener.on_events(server_sent_event(told.body()), true);
  else
    listener.on_error(told);
}

void generation::deliver(std::size_t index, answer_delta news, const std::string& finish_reason) {
  choice_text& whole = choices_[index].whole;
  if (!order_.stream) {
    whole.text += news.text;
    whole.reasoning += news.reasoning;
    for (call_part& call : news.calls) {
      if (call.begins) whole.calls.push_back({call.index, true, std::move(call.name), {}});
      whole.calls.back().arguments += call.arguments;
    }
    std::ranges::move(news.tokens, std::back_inserter(whole.tokens));
    whole.finish_reason = finish_reason;
    return;
  }
  if (news.empty() && finish_reason.empty()) return;
  choice_text part = whole;  // without text: a stream keeps none
  part.text = std::move(news.text);
  part.reasoning = std::move(news.reasoning);
  part.calls = std::move(news.calls);
  part.tokens = std::move(news.tokens);
  part.finish_reason = finish_reason;
  whole.first = false;
  any_sent_ = true;
  listener_->on_events(
      server_sent_event(to_text(response_chunk(order_.head, part, setting_.vocabulary))), false);
}

response_usage generation::usage() const {
  response_usage out{order_.prompt_tokens, 0, cached_tokens_};
  for (const choice& of : choices_) {
    out.completion_tokens += of.tokens;
    out.drafted_tokens += of.drafted_tokens;
    out.accepted_tokens += of.accepted_tokens;
  }
  return out;
}

void generation::finish() {
  if (!std::ranges::all_of(choices_, &choice::over)) return;
  const generation_listener listener = std::move(*listener_);
  listener_.reset();
  ended("answered");
  if (order_.stream) {
    std::string last;
    if (order_.include_usage) last = server_sent_event(to_text(usage_chunk(order_.head, usage())));
    return listener.on_events(last + std::string(end_of_stream), true);
  }
  std::vector<choice_text> all;
  for (choice& of : choices_) all.push_back(std::move(of.whole));
  listener.on_body(to_text(response_body(order_.head, all, usage(), setting_.vocabulary)));
}

void generation::cancel_running() {
  for (const choice& of : choices_)
    if (!of.ended) setting_.service.cancel(of.request);
}

void generation::abandon() {
  if (!listener_) return;
  listener_.reset();
  cancel_running();
  ended("abandoned");
}

void generation::ended(const std::string& how) {
  setting_.counters.generation_ended(std::chrono::steady_clock::now() - begin_, how);
}

}  // namespace cedar::http
