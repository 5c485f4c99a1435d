#include "runtime/http/api_request.hpp"

#include <charconv>

namespace cedar::http {

namespace {

using json = nlohmann::ordered_json;

/// Default of the completions interface, which clients rely on.
constexpr std::uint32_t completion_tokens_default = 16;
/// Seconds; what is counted is milliseconds.
constexpr double timeout_s_min = 0.001;
/// More would not fit any context.
constexpr std::uint64_t tokens_max = std::numeric_limits<std::int32_t>::max();

void read_stops(body_reader& body, std::vector<std::string>& to) {
  const json* value = body.find("stop");
  if (value == nullptr) return;
  const json list = value->is_string() ? json::array({*value}) : *value;
  if (!list.is_array() || list.size() > stops_max)
    return body.mistake("stop", "'stop' must be a text or a list of at most " +
                                    std::to_string(stops_max) + " texts");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string text = list[i].is_string() ? list[i].get<std::string>() : "";
    if (text.empty() || text.size() > stop_bytes_max)
      return body.mistake("stop", "'stop[" + std::to_string(i) + "]' must be a text of 1 to " +
                                      std::to_string(stop_bytes_max) + " bytes");
    to.push_back(text);
  }
}

void read_bias(body_reader& body, std::vector<flow::token_bias>& to) {
  const json* value = body.find("logit_bias");
  if (value == nullptr) return;
  const std::string wrong = "'logit_bias' must be an object of at most " +
                            std::to_string(flow::token_biases_max) +
                            R"( token ids with numbers from -100 to 100, e.g. {"17": -2.5})";
  if (!value->is_object() || value->size() > flow::token_biases_max)
    return body.mistake("logit_bias", wrong);
  for (const auto& [key, bias] : value->items()) {
    token_id token = 0;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), token);
    const bool is_id = read.ec == std::errc{} && read.ptr == key.data() + key.size();
    const double number = bias.is_number() ? bias.get<double>() : std::nan("");
    if (!is_id || !(number >= -100 && number <= 100)) return body.mistake("logit_bias", wrong);
    to.push_back({token, static_cast<float>(number)});
  }
}

void read_sampling(body_reader& body, generation_ask& to) {
  flow::sampling_options& options = to.sampling;
  options.temperature = 1;
  body.number("temperature", 0, 2, options.temperature);
  body.number("top_p", 0, 1, options.top_p);
  if (options.top_p == 0) body.mistake("top_p", "'top_p' must be more than 0");
  body.number("min_p", 0, 1, options.min_p);
  body.whole("top_k", 0, tokens_max, options.top_k);
  body.number("presence_penalty", -2, 2, options.presence_penalty);
  body.number("frequency_penalty", -2, 2, options.frequency_penalty);
  body.number("repetition_penalty", 0.01, 100, options.repetition_penalty);
  read_bias(body, options.bias);
  std::uint64_t seed = 0;
  if (body.whole("seed", 0, std::numeric_limits<std::uint64_t>::max(), seed)) to.seed = seed;
}

void read_mode(body_reader& body, generation_ask& to) {
  const json* value = body.find("mode");
  if (value == nullptr) return;
  if (value->is_string()) to.mode = session::prefill_mode_of(value->get<std::string>());
  if (!to.mode) body.mistake("mode", R"('mode' must be "exact", "bounded" or "halo")");
}

void read_timeout(body_reader& body, generation_ask& to) {
  double seconds = 0;
  if (body.number("timeout", timeout_s_min, timeout_s_max, seconds))
    to.time_limit = std::chrono::milliseconds(std::llround(seconds * 1000));
}

void read_stream(body_reader& body, generation_ask& to) {
  body.flag("stream", to.stream);
  const json* options = body.find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object() || !to.stream)
    return body.mistake("stream_options",
                        "'stream_options' must be an object, and goes with \"stream\": true");
  for (const auto& [key, value] : options->items()) {
    if (key == "include_usage" && value.is_boolean())
      to.include_usage = value.get<bool>();
    else if (key != "include_obfuscation" || value != false)
      body.mistake("stream_options." + key,
                   "of 'stream_options' only \"include_usage\": true or false, and "
                   "\"include_obfuscation\": false, are known");
  }
}

void read_prompt_logprobs(body_reader& body, generation_ask& to) {
  std::uint32_t count = 0;
  if (!body.whole("prompt_logprobs", 0, top_logprobs_max, count)) return;
  to.prompt_logprobs = count;
  if (to.stream)
    body.mistake("prompt_logprobs",
                 "'prompt_logprobs' come with a whole answer, not with a stream");
}

std::optional<std::vector<token_id>> token_ids_of(const json& list) {
  if (!list.is_array() || list.empty()) return std::nullopt;
  std::vector<token_id> out;
  for (const json& id : list) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > tokens_max) return std::nullopt;
    out.push_back(id.get<token_id>());
  }
  return out;
}

void read_prompts(body_reader& body, std::vector<completion_ask::prompt>& to) {
  const json* value = body.find("prompt");
  const std::string wrong = "'prompt' must be a text, a list of token ids, or a list of at most " +
                            std::to_string(prompts_max) + " of either";
  if (value == nullptr) return body.mistake("prompt", "'prompt' is missing");
  if (value->is_string()) return to.emplace_back(value->get<std::string>()), void();
  if (auto ids = token_ids_of(*value)) return to.emplace_back(std::move(*ids)), void();
  if (!value->is_array() || value->empty() || value->size() > prompts_max)
    return body.mistake("prompt", wrong);
  for (const json& each : *value) {
    auto ids = token_ids_of(each);
    if (each.is_string())
      to.emplace_back(each.get<std::string>());
    else if (ids)
      to.emplace_back(std::move(*ids));
    else
      return body.mistake("prompt", wrong);
  }
}

}  // namespace

void read_generation(body_reader& body, std::initializer_list<const char*> max_tokens_names,
                     generation_ask& to) {
  body.text("model", to.model);
  if (to.model.empty()) body.mistake("model", "'model' is missing; GET /v1/models names it");
  body.whole("n", 1, choices_max, to.n);
  for (const char* name : max_tokens_names) {
    std::uint32_t count = 0;
    if (!body.whole(name, 1, tokens_max, count)) continue;
    to.new_tokens_max = count;
    to.new_tokens_member = name;
  }
  if (body.whole("min_tokens", 0, tokens_max, to.sampling.tokens_min) && to.new_tokens_max &&
      to.sampling.tokens_min > *to.new_tokens_max)
    body.mistake("min_tokens", "'min_tokens' must not be more than '" + to.new_tokens_member + "'");
  body.flag("ignore_eos", to.ignore_eos);
  read_stream(body, to);
  read_mode(body, to);
  read_timeout(body, to);
  read_stops(body, to.stops);
  read_prompt_logprobs(body, to);
  read_sampling(body, to);
  body.ignore({"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
               "prompt_cache_retention"});
}

api_result<completion_ask> parse_completion(std::string_view text) {
  const auto body = parse_body(text);
  if (!body) return tl::unexpected(body.error());
  body_reader reader(*body);
  completion_ask out;
  out.new_tokens_default = completion_tokens_default;
  read_generation(reader, {"max_tokens"}, out);
  read_prompts(reader, out.prompts);
  out.logprobs = reader.whole("logprobs", 0, top_logprobs_max, out.top_logprobs);
  std::uint32_t best_of = out.n;
  reader.whole("best_of", 1, choices_max, best_of);
  if (best_of != out.n)
    reader.mistake("best_of", "'best_of' must be 'n': answers are not chosen among more");
  bool echo = false;
  reader.flag("echo", echo);
  if (echo) reader.mistake("echo", "'echo' is not supported: the prompt is not repeated");
  if (auto wrong = reader.finish()) return tl::unexpected(std::move(*wrong));
  return out;
}

}  // namespace cedar::http
