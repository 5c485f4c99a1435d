#include "runtime/http/order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "runtime/flow/sampling_rules.hpp"

namespace cedar::http {

namespace {

std::uint64_t drawn() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

response_head head_of(response_kind kind, const served_model& model) {
  response_head out;
  out.kind = kind;
  out.id = fmt::format("{}-{:016x}{:016x}", kind == response_kind::chat ? "chatcmpl" : "cmpl",
                       drawn(), drawn());
  out.created_s = std::chrono::duration_cast<std::chrono::seconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  out.model = model.name;
  out.fingerprint = model.fingerprint;
  return out;
}

}  // namespace

api_result<std::vector<token_id>> order_maker::tokens_of(
    const completion_ask::prompt& prompt) const {
  if (const auto* ids = std::get_if<std::vector<token_id>>(&prompt)) {
    for (const token_id id : *ids)
      if (id < 0 || static_cast<std::uint32_t>(id) >= limits_.vocabulary)
        return tl::unexpected(bad_request(
            fmt::format("token {} is outside the vocabulary of {}", id, limits_.vocabulary),
            "prompt"));
    if (limits_.image_token >= 0 && std::ranges::find(*ids, limits_.image_token) != ids->end())
      return tl::unexpected(bad_request(
          fmt::format("token {} stands for an image, which comes as an image_url of a chat's "
                      "message; leave it out",
                      limits_.image_token),
          "prompt"));
    return *ids;
  }
  auto out = text::tokenize(vocabulary_, text::continuation_prompt(std::get<std::string>(prompt)));
  if (!out) return tl::unexpected(bad_request(out.error().message, "prompt"));
  return std::move(*out);
}

api_result<generation_order> order_maker::make(const completion_ask& ask) const {
  std::vector<std::vector<token_id>> prompts;
  for (const completion_ask::prompt& prompt : ask.prompts) {
    auto tokens = tokens_of(prompt);
    if (!tokens) return tl::unexpected(tokens.error());
    prompts.push_back(std::move(*tokens));
  }
  return make(response_kind::completion, ask, prompts);
}

api_result<generation_order> order_maker::make(const chat_ask& ask) const {
  const auto pieces = text::encode_prompt(ask.messages, ask.frame);
  if (!pieces) return tl::unexpected(bad_request(pieces.error().message, pieces.error().path));
  auto tokens = text::tokenize(vocabulary_, *pieces);
  if (!tokens) return tl::unexpected(bad_request(tokens.error().message, "messages"));
  auto images = read_images(ask, limits_, *tokens);
  if (!images) return tl::unexpected(images.error());
  auto out = make(response_kind::chat, ask, {std::move(*tokens)});
  if (!out) return out;
  out->images = std::move(*images);
  // An answer that goes on where a message stops, or one to a task, has no reasoning.
  const text::chat_message& last = ask.messages.back();
  out->chat = last.continued || last.task ? text::chat_mode::chat : ask.frame.mode;
  if (ask.frame.calling) out->begun = text::begun_call(*ask.frame.calling);
  return out;
}

api_result<void> decode_images(generation_order& order, const image::image_rules& rules) {
  const auto images = decode(order.images, rules);
  if (!images) return tl::unexpected(images.error());
  order.images.clear();
  for (session::generation_request& request : order.requests) request.images = *images;
  return {};
}

api_result<std::uint32_t> order_maker::new_tokens_of(const generation_ask& ask, std::size_t length,
                                                     const char* param) const {
  const auto too_long = [](const std::string& why, const char* member) {
    return tl::unexpected(bad_request(why, member, "context_length_exceeded"));
  };
  if (length > limits_.context_max)
    return too_long(fmt::format("the prompt has {} tokens, the context holds {}; shorten it",
                                length, limits_.context_max),
                    param);
  const std::uint64_t held =
      limits_.kv_positions_max == 0 ? limits_.context_max : limits_.kv_positions_max;
  if (length > held)
    return too_long(fmt::format("the prompt has {} tokens, the KV of this server holds {} "
                                "positions; shorten it",
                                length, held),
                    param);
  // The last token of an answer takes no position.
  const auto room_for = [&](std::uint64_t positions) {
    return static_cast<std::uint32_t>(positions - length + 1);
  };
  const bool kv_is_less = held < limits_.context_max;
  const std::uint64_t most = kv_is_less ? held : limits_.context_max;
  const std::uint32_t room = room_for(most);
  if (!ask.new_tokens_max)
    return ask.new_tokens_default == 0 ? room : std::min(room, ask.new_tokens_default);
  const std::uint32_t wanted = *ask.new_tokens_max;
  if (wanted > room)
    return too_long(
        fmt::format("a prompt of {} tokens and an answer of {} take {} positions, the {} holds {}; "
                    "ask for at most {} tokens",
                    length, wanted, length + wanted - 1,
                    kv_is_less ? "KV of this server" : "context", most, room),
        ask.new_tokens_member.c_str());
  return wanted;
}

api_result<generation_order> order_maker::make(
    response_kind kind, const generation_ask& ask,
    const std::vector<std::vector<token_id>>& prompts) const {
  const char* param = kind == response_kind::chat ? "messages" : "prompt";
  if (ask.model != model_.name)
    return tl::unexpected(api_error{
        404, "there is no model '" + ask.model + "' here; this server has '" + model_.name + "'",
        "invalid_request_error", "model", "model_not_found", 0});
  // Ranges were checked with the body; what is left needs the vocabulary.
  if (const auto sane = flow::check(ask.sampling, limits_.vocabulary); !sane)
    return tl::unexpected(bad_request(sane.error().message, "logit_bias"));
  const session::prefill_mode mode = ask.mode.value_or(model_.mode);
  if (ask.prompt_logprobs && mode != session::prefill_mode::exact)
    return tl::unexpected(
        bad_request(fmt::format("'prompt_logprobs' need \"mode\": \"exact\": in mode {} not every "
                                "row of a prompt has logits",
                                session::to_string(mode)),
                    "prompt_logprobs"));
  generation_order out;
  out.head = head_of(kind, model_);
  out.stops = ask.stops;
  out.scored = ask.logprobs;
  out.top_logprobs = ask.top_logprobs;
  out.prompt_logprobs = ask.prompt_logprobs;
  out.stream = ask.stream;
  out.include_usage = ask.include_usage;
  out.time_limit = ask.time_limit;

  session::generation_request request;
  request.mode = mode;
  request.ignore_eos = ask.ignore_eos;
  request.sampling = ask.sampling;
  if (ask.sampling.temperature > 0) {
    // Drawn seeds have 53 bits, so that whoever reads JSON numbers as doubles gets them back whole.
    request.sampling.seed = ask.seed ? *ask.seed : drawn() >> 11;
    out.head.seed = request.sampling.seed;
  }
  for (const std::vector<token_id>& prompt : prompts) {
    const auto new_tokens = new_tokens_of(ask, prompt.size(), param);
    if (!new_tokens) return tl::unexpected(new_tokens.error());
    const auto length = static_cast<std::uint32_t>(prompt.size());
    request.prompt = prompt;
    request.new_tokens_max = *new_tokens;
    out.prompt_tokens += length;
    for (request.sampling.choice = 0; request.sampling.choice < ask.n; ++request.sampling.choice) {
      const bool scores_prompt = ask.prompt_logprobs && request.sampling.choice == 0;
      request.want_logits = ask.top_logprobs > 0 || scores_prompt;
      request.prompt_logits = scores_prompt ? length : 1;
      out.requests.push_back(request);
      out.tokens_most += std::uint64_t{length} + request.new_tokens_max;
    }
  }
  return out;
}

}  // namespace cedar::http
