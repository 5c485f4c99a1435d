// The input is the body of a request, read as a completion and as a chat. What is accepted is JSON
// and gives generations that a pipeline can run: ids of the vocabulary, lengths that fit, options
// within their rules, images in their places. What is refused is refused with 400 or 404, in a body
// that is JSON itself.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "kernels/base/check.hpp"
#include "runtime/flow/sampling_rules.hpp"
#include "runtime/http/order.hpp"
#include "runtime/session/prompt_images.hpp"
#include "runtime/text/internal/python_json.hpp"
#include "tests/support/fuzz_driver.hpp"

namespace cedar::test {

fuzz_material fuzz_corpus() {
  return {
      {R"({"model":"m","prompt":"Once","n":2,"max_tokens":7,"ignore_eos":true,"stream":true,
"stream_options":{"include_usage":true},"stop":["a","b"],"logprobs":2,"temperature":0.5,"top_p":0.5,
"min_p":0.1,"top_k":40,"presence_penalty":-1,"frequency_penalty":1,"repetition_penalty":1.1,
"logit_bias":{"17":-2.5},"seed":9,"timeout":2.5,"user":"u","echo":false})",
       R"({"model":"m","prompt":[[5,6],"text",[7]],"temperature":0,"stop":"x"})",
       R"({"model":"m","prompt":[1,2,3],"max_tokens":null})",
       R"({"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[
{"type":"text","text":"hi"}]},{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[
{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool",
"tool_call_id":"c","content":"t"},{"role":"user","content":"go"}],"tools":[{"type":"function",
"function":{"name":"f","description":"d","parameters":{"type":"object"}}}],"tool_choice":"auto",
"reasoning_effort":"high","thinking":{"type":"enabled"},"response_format":{"type":"text"},
"logprobs":true,"top_logprobs":3,"max_completion_tokens":5,"parallel_tool_calls":true})",
       R"({"model":"m","messages":[{"role":"user","content":"x"}],"seed":18446744073709551615})",
       R"({"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},
{"type":"image_url","image_url":{"detail":"low","url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAABcAAAARCAIAAAC5EaDqAAAAb0lEQVR4nKXMSQ6AIBAF0Y+NY4MSNd7/qC40hIhoA8lb1KoUAK6myYKgKvlLUyO8ULHHRZeJL22B10uXK3Xps3xcBrnvyyjBGH8vk4Tkwr+EF5PCMAQjv9i0I+syR/Yrci9LYPNdcHEER1gJju92J7q2D4lP4HvhAAAAAElFTkSuQmCC"}}]}],"n":2})",
       std::string(R"({"model":"m","prompt":"p"})") + '\0' + "{"},
      {"null",
       "true",
       "[]",
       "{}",
       "\"\"",
       ",",
       "[[",
       "]]",
       "1e400",
       "-1",
       "1.5",
       "\"prompt\":\"x\",",
       "\"prompt\":[2047],",
       "\"prompt\":[2048],",
       "\"prompt\":[2045],",
       "data:image/jpeg;base64,",
       "https://",
       "====",
       "\"n\":16,",
       "\"max_tokens\":4294967295,",
       "\"timeout\":1e9,",
       "\"timeout\":0.0001,",
       "\"stop\":\"\",",
       "\"stop\":[],",
       "\"logit_bias\":{\"99999999999\":1},",
       "\"logit_bias\":{\"2048\":1},",
       "\"temperature\":2.0,",
       "\"top_p\":1e-30,",
       "\"repetition_penalty\":0.01,",
       "\"messages\":[],",
       "\"role\":\"tool\",",
       "\"thinking\":\"enabled\",",
       "\"response_format\":\"text\",",
       "\"stream\":true,",
       "\"stream_options\":null,",
       "\\ud83c",
       "\\u0000",
       "\xff",
       std::string(1, '\0')}};
}

}  // namespace cedar::test

namespace {

using namespace cedar;

constexpr session::service_limits limits{.context_max = 64,
                                         .vocabulary = 2048,
                                         .image_token = 2045,
                                         .images = image::image_rules{.tokens_max = 16}};
/// Larger pictures are not decoded here: a mutated size would cost minutes.
constexpr image::image_limits small{.pixels_max = 1U << 16};

const text::tokenizer& vocabulary() {
  static const auto loaded =
      text::tokenizer::load(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny/tokenizer.json");
  return loaded.value();
}

void check_refusal(const http::api_error& what) {
  CEDAR_ASSERT(what.status == 400 || what.status == 404, what.body());
  CEDAR_ASSERT(!what.message.empty(), "no reason");
  const auto body = nlohmann::json::parse(what.body());
  CEDAR_ASSERT(body.at("error").at("message").is_string(), "no message");
}

void check_order(const http::generation_order& order, const http::generation_ask& ask,
                 std::size_t prompts) {
  CEDAR_ASSERT(order.requests.size() == prompts * ask.n, "not a generation for every choice");
  std::uint64_t tokens = 0;
  for (const session::generation_request& request : order.requests) {
    CEDAR_ASSERT(!request.prompt.empty(), "no prompt");
    for (const token_id id : request.prompt)
      CEDAR_ASSERT(id >= 0 && static_cast<std::uint32_t>(id) < limits.vocabulary, "no such id");
    CEDAR_ASSERT(request.new_tokens_max > 0, "nothing to generate");
    // The last token takes no position.
    CEDAR_ASSERT(request.prompt.size() + request.new_tokens_max <= limits.context_max + 1, "long");
    CEDAR_ASSERT(flow::check(request.sampling, limits.vocabulary).has_value(), "options");
    tokens += request.prompt.size() + request.new_tokens_max;
  }
  CEDAR_ASSERT(order.tokens_most == tokens, "not what admission is to count");
  CEDAR_ASSERT(!order.time_limit || order.time_limit->count() > 0, "no time");
}

void check_images(http::generation_order& order) {
  for (const http::sent_image& sent : order.images)
    if (!image::read_header(sent.file, small)) return;
  if (const auto decoded = http::decode_images(order, *limits.images); !decoded)
    return check_refusal(decoded.error());
  for (const session::generation_request& request : order.requests)
    CEDAR_ASSERT(
        session::check_images(request.prompt, request.images, limits.image_token, limits.images)
            .has_value(),
        "images in other places");
}

template <class Ask>
void check(std::string_view body, const http::api_result<Ask>& ask) {
  if (!ask) return check_refusal(ask.error());
  CEDAR_ASSERT(text::is_json(body), "no JSON");
  std::size_t prompts = 1;
  if constexpr (std::is_same_v<Ask, http::completion_ask>) prompts = ask->prompts.size();
  const http::served_model model{"m", "f", 1, {}};
  auto order = http::order_maker(model, vocabulary(), limits).make(*ask);
  if (!order) return check_refusal(order.error());
  check_order(*order, *ask, prompts);
  check_images(*order);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  check(body, http::parse_completion(body));
  check(body, http::parse_chat(body));
  return 0;
}
