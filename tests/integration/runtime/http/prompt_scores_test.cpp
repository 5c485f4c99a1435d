// Goal: a prompt's tokens get the scores that the model's logits give them. Method: cedar-tiny
// behind a server that takes a few rows a step; softmax by hand over the logits that the engine
// itself gives for the same ids.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"
#include "tests/integration/runtime/http/world.hpp"
#include "tests/integration/support/golden_prompt.hpp"

using namespace cedar;
using namespace cedar::test;
using nlohmann::json;

namespace {

/// Logits of every row of the prompt but the last, by position.
std::map<std::uint32_t, std::vector<float>> logits_of(const std::vector<token_id>& prompt) {
  const auto backend = kernels::make_backend("cpu");
  const auto source = stage::model_source::open(checkpoint_of("cedar-tiny")).value();
  const auto engine = local::local_engine::open(*source, *backend, {}).value();
  session::generation_request request;
  request.prompt = prompt;
  request.prompt_logits = static_cast<std::uint32_t>(prompt.size());
  request.want_logits = true;
  std::map<std::uint32_t, std::vector<float>> out;
  const auto ran =
      engine->generate({request}, {[&](std::size_t, const session::row_event& row) {
                                     out[row.position].assign(row.logits.begin(), row.logits.end());
                                   },
                                   {}});
  BOOST_REQUIRE(ran.has_value());
  return out;
}

void check_score(const json& seen, const std::vector<float>& logits, token_id given) {
  const auto at = [&](token_id token) { return logits[static_cast<std::size_t>(token)]; };
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  BOOST_TEST(seen.size() >= 2U);
  BOOST_TEST(seen.size() <= 3U);
  BOOST_TEST(seen.contains(std::to_string(given)));
  std::size_t best = 0;
  for (const auto& [id, score] : seen.items()) {
    const float own = at(std::stoi(id));
    BOOST_TEST(std::abs(score.at("logprob").get<double>() - (own - std::log(sum))) < 1e-5);
    const auto above = std::ranges::count_if(logits, [&](float logit) { return logit > own; });
    BOOST_TEST(score.at("rank") == above + 1);
    best += above < 2 ? 1 : 0;
    BOOST_TEST(score.at("decoded_token") == *vocabulary().token_bytes(std::stoi(id)));
  }
  BOOST_TEST(best == 2U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(prompt_scores)

BOOST_AUTO_TEST_CASE(are_those_of_the_models_logits) {
  const world one;
  const std::vector<token_id> prompt = *vocabulary().encode(
      "Once upon a time there was a little cat.", text::control_strings::plain_text);
  const http_reply reply = one.post({{"model", "m"},
                                     {"prompt", prompt},
                                     {"max_tokens", 3},
                                     {"n", 2},
                                     {"ignore_eos", true},
                                     {"prompt_logprobs", 2}});
  BOOST_TEST_REQUIRE(reply.status == 200U, reply.body);
  const json choices = json::parse(reply.body).at("choices");
  BOOST_TEST(!choices.at(1).contains("prompt_logprobs"));
  const json& scores = choices.at(0).at("prompt_logprobs");
  BOOST_TEST_REQUIRE(scores.size() == prompt.size());
  BOOST_TEST(scores.at(0).is_null());
  const auto logits = logits_of(prompt);
  for (std::size_t i = 1; i < prompt.size(); ++i) BOOST_TEST_CONTEXT("token " << i)
  check_score(scores.at(i), logits.at(static_cast<std::uint32_t>(i - 1)), prompt[i]);
}

BOOST_AUTO_TEST_CASE(are_refused_where_there_are_none) {
  const world one;
  for (const json& more :
       {json{{"mode", "bounded"}}, json{{"mode", "halo"}}, json{{"stream", true}}}) {
    json body{{"model", "m"}, {"prompt", "Once"}, {"prompt_logprobs", 0}};
    body.update(more);
    const http_reply reply = one.post(body);
    BOOST_TEST(reply.status == 400U);
    BOOST_TEST(json::parse(reply.body).at("error").at("param") == "prompt_logprobs");
  }
}

BOOST_AUTO_TEST_SUITE_END()
