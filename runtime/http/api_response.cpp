#include "runtime/http/api_response.hpp"

#include "runtime/text/utf8.hpp"

namespace cedar::http {

namespace {

using json = nlohmann::ordered_json;

std::string_view bytes_of(token_id token, const text::tokenizer& vocabulary) {
  // Models may have more rows than the tokenizer has tokens.
  const auto bytes = vocabulary.token_bytes(token);
  return bytes ? *bytes : std::string_view{};
}

json chat_score(const token_score& score, const text::tokenizer& vocabulary) {
  const std::string_view bytes = bytes_of(score.token, vocabulary);
  json list = json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return {{"token", text::to_valid_utf8(bytes)},
          {"logprob", score.log_probability},
          {"bytes", std::move(list)}};
}

json chat_logprobs(const choice_text& choice, const text::tokenizer& vocabulary) {
  json content = json::array();
  for (const scored_token& token : choice.tokens) {
    json entry = chat_score(token.chosen, vocabulary);
    entry["top_logprobs"] = json::array();
    for (const token_score& score : token.top)
      entry["top_logprobs"].push_back(chat_score(score, vocabulary));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

json completion_logprobs(const choice_text& choice, const text::tokenizer& vocabulary) {
  json tokens = json::array();
  json scores = json::array();
  json top = json::array();
  json offsets = json::array();
  for (const scored_token& token : choice.tokens) {
    tokens.push_back(text::to_valid_utf8(bytes_of(token.chosen.token, vocabulary)));
    scores.push_back(token.chosen.log_probability);
    json best = json::object();
    for (const token_score& score : token.top)
      best[text::to_valid_utf8(bytes_of(score.token, vocabulary))] = score.log_probability;
    top.push_back(std::move(best));
    offsets.push_back(token.offset);
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(scores)},
          {"top_logprobs", std::move(top)},
          {"text_offset", std::move(offsets)}};
}

json logprobs_of(const choice_text& choice, response_kind kind, const text::tokenizer& vocabulary) {
  if (!choice.scored) return nullptr;
  return kind == response_kind::chat ? chat_logprobs(choice, vocabulary)
                                     : completion_logprobs(choice, vocabulary);
}

/// As vLLM has them: an object a position, scores by token id.
json prompt_logprobs(const choice_text& choice, const text::tokenizer& vocabulary) {
  json out = json::array();
  for (const std::optional<prompt_score>& one : choice.prompt) {
    json& scores = out.emplace_back(nullptr);
    if (!one) continue;
    const auto add = [&](const token_score& score, std::uint32_t rank) {
      scores[std::to_string(score.token)] = {
          {"logprob", score.log_probability},
          {"rank", rank},
          {"decoded_token", text::to_valid_utf8(bytes_of(score.token, vocabulary))}};
    };
    add(one->given, one->rank);
    std::uint32_t rank = 0;
    for (const token_score& score : one->top) {
      ++rank;
      if (score.token != one->given.token) add(score, rank);
    }
  }
  return out;
}

json finish_of(const choice_text& choice) {
  return choice.finish_reason.empty() ? json(nullptr) : json(choice.finish_reason);
}

json object_of(const response_head& head, const char* object, json choices) {
  json out{{"id", head.id},
           {"object", object},
           {"created", head.created_s},
           {"model", head.model},
           {"system_fingerprint", head.fingerprint}};
  if (head.seed) out["seed"] = *head.seed;
  out["choices"] = std::move(choices);
  return out;
}

const char* chunk_name(response_kind kind) {
  return kind == response_kind::chat ? "chat.completion.chunk" : "text_completion";
}

json usage_json(const response_usage& usage) {
  json out = {{"prompt_tokens", usage.prompt_tokens},
              {"completion_tokens", usage.completion_tokens},
              {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
              {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
  if (usage.drafted_tokens > 0)
    out["completion_tokens_details"] = {
        {"accepted_prediction_tokens", usage.accepted_tokens},
        {"rejected_prediction_tokens", usage.drafted_tokens - usage.accepted_tokens}};
  return out;
}

json call_json(const call_part& call, const response_head& head, std::uint32_t choice) {
  json function = json::object();
  if (call.begins) function["name"] = call.name;
  function["arguments"] = call.arguments;
  json out = json::object();
  if (call.begins) {
    out["id"] = "call_" + head.id + "_" + std::to_string(choice) + "_" + std::to_string(call.index);
    out["type"] = "function";
  }
  out["function"] = std::move(function);
  return out;
}

json whole_choice(const choice_text& choice, const response_head& head,
                  const text::tokenizer& vocabulary) {
  const response_kind kind = head.kind;
  json out{{"index", choice.index}};
  if (kind == response_kind::chat) {
    out["message"] = {{"role", "assistant"}, {"content", choice.text}};
    if (!choice.reasoning.empty()) out["message"]["reasoning_content"] = choice.reasoning;
    for (const call_part& call : choice.calls)
      out["message"]["tool_calls"].push_back(call_json(call, head, choice.index));
  } else {
    out["text"] = choice.text;
  }
  out["logprobs"] = logprobs_of(choice, kind, vocabulary);
  if (!choice.prompt.empty()) out["prompt_logprobs"] = prompt_logprobs(choice, vocabulary);
  out["finish_reason"] = finish_of(choice);
  return out;
}

json new_of_choice(const choice_text& news, const response_head& head,
                   const text::tokenizer& vocabulary) {
  const response_kind kind = head.kind;
  json out{{"index", news.index}};
  if (kind == response_kind::chat) {
    json delta = json::object();
    if (news.first) delta["role"] = "assistant";
    if (!news.reasoning.empty()) delta["reasoning_content"] = news.reasoning;
    if (!news.text.empty() || news.first) delta["content"] = news.text;
    for (const call_part& call : news.calls) {
      json part = call_json(call, head, news.index);
      part["index"] = call.index;
      delta["tool_calls"].push_back(std::move(part));
    }
    out["delta"] = std::move(delta);
  } else {
    out["text"] = news.text;
  }
  const bool has_scores = news.scored && !news.tokens.empty();
  out["logprobs"] = has_scores ? logprobs_of(news, kind, vocabulary) : json(nullptr);
  out["finish_reason"] = finish_of(news);
  return out;
}

}  // namespace

json response_body(const response_head& head, const std::vector<choice_text>& choices,
                   const response_usage& usage, const text::tokenizer& vocabulary) {
  json list = json::array();
  for (const choice_text& choice : choices) list.push_back(whole_choice(choice, head, vocabulary));
  json out =
      object_of(head, head.kind == response_kind::chat ? "chat.completion" : "text_completion",
                std::move(list));
  out["usage"] = usage_json(usage);
  return out;
}

json response_chunk(const response_head& head, const choice_text& news,
                    const text::tokenizer& vocabulary) {
  return object_of(head, chunk_name(head.kind),
                   json::array({new_of_choice(news, head, vocabulary)}));
}

json usage_chunk(const response_head& head, const response_usage& usage) {
  json out = object_of(head, chunk_name(head.kind), json::array());
  out["usage"] = usage_json(usage);
  return out;
}

std::string to_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string server_sent_event(std::string_view text) {
  return "data: " + std::string(text) + "\n\n";
}

}  // namespace cedar::http
