// The answers to one request, from the pipeline to the client: joins choices, ends them at stop
// strings, and makes chunks or one response of them.
//
// 1. All members are called in one executor (a connection's strand), and so is the listener.
// 2. The pipeline's events are posted there; they keep the generation alive until each of its
//    requests has ended.
// 3. The listener hears nothing after on_error, on_body, the end of a stream, or abandon().
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/http/admission.hpp"
#include "runtime/http/answer.hpp"
#include "runtime/http/metrics.hpp"
#include "runtime/http/order.hpp"

namespace cedar::http {

struct generation_listener {
  std::function<void(std::string body)> on_body;  ///< the whole response
  /// A part of a stream, in the form of server-sent events; `last`: there is no more.
  std::function<void(std::string events, bool last)> on_events;
  std::function<void(const api_error&)> on_error;  ///< before the first part of a stream
};

struct generation_setting {
  session::generation_service& service;
  const text::tokenizer& vocabulary;
  metrics& counters;
  std::function<void(std::function<void()>)> post;  ///< to the executor
};

class generation : public std::enable_shared_from_this<generation> {
 public:
  /// To be followed by start(). What the setting refers to outlives the generation.
  generation(generation_setting setting, std::unique_ptr<admission::place> place,
             generation_order order, generation_listener listener);

  void start();
  /// The client is gone: gives up what is still running.
  void abandon();
  /// The time for the answer, `limit`, has passed: gives up what is still running, and tells the
  /// client. Nothing if the answer is complete.
  void expire(std::chrono::milliseconds limit);

 private:
  struct choice {
    choice(answer making) : text(std::move(making)) {}

    request_id request;
    answer text;
    choice_text whole;  ///< what the client has, or will have
    std::vector<token_id> prompt;  ///< whose scores are wanted; else empty
    std::string finish_reason;  ///< as the pipeline said
    std::uint64_t tokens = 0;
    std::uint64_t drafted_tokens = 0;
    std::uint64_t accepted_tokens = 0;
    bool has_calls = false;
    bool over = false;  ///< for the client
    bool ended = false;  ///< for the pipeline
  };

  session::request_events events_of(std::size_t index);
  void take_row(std::size_t index, const session::row_event& row, std::vector<token_score> top);
  /// The row before a prompt's token; in the pipeline's thread.
  void score_prompt(std::size_t index, const session::row_event& row);
  void take_end(std::size_t index, const session::usage& used);
  void take_failure(std::size_t index, const error& what);
  /// Tells the client instead of the rest of the answer; `how` goes to the metrics.
  void give_up(const api_error& told, const std::string& how);
  void deliver(std::size_t index, answer_delta news, const std::string& finish_reason);
  void finish();
  void cancel_running();
  void ended(const std::string& how);
  response_usage usage() const;

  std::unique_ptr<admission::place> place_;  // goes last: whoever waits for it may end the executor
  generation_setting setting_;
  generation_order order_;
  std::optional<generation_listener> listener_;
  std::vector<choice> choices_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::uint32_t cached_tokens_ = 0;  ///< of the prompt, by the choice that has most
  bool any_token_ = false;
  bool any_sent_ = false;
};

}  // namespace cedar::http
