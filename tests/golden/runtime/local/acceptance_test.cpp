// Goal: drafts of the trained checkpoint are accepted as often as its makers measured: 3.81 tokens
// a step along greedy answers to 20 prompts of theirs (configs/models/cedar-tiny). Method: 20
// prompts of the same kinds, twelve openings and eight chats, verified whole; a mean over all
// steps. Bits are the same everywhere, so the bound only says how well our prompts stand for
// theirs.
#include <boost/test/unit_test.hpp>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"
#include "runtime/text/prompt_encoding.hpp"

using namespace cedar;

namespace {

const char* const openings[] = {
    "Once upon a time, there was a little girl named Lily.",
    "Once upon a time, there was a small mouse who lived under the stairs.",
    "One day, a boy named Tom went to the park with his mother.",
    "There was once an old man who had three sons.",
    "In a green forest there lived a clever fox.",
    "One afternoon, Sara and her friend Ben found a box in the garden.",
    "Long ago, a king had a beautiful daughter.",
    "A dog named Max liked to run by the river.",
    "Every morning, the baker made bread for the whole village.",
    "Anna had a red ball, and she played with it every day.",
    "A bird sat on a high branch and sang.",
    "Grandmother told the children a story about a brave rabbit.",
};
const char* const questions[] = {
    "Tell me a story.",
    "What is your name?",
    "Tell me a story about a fox.",
    "What color is the sky?",
    "How are you?",
    "Tell me a short story about a dog and a cat.",
    "The code of the red box is 417. What is the code of the red box?",
    "Can you help me?",
};

constexpr double published = 3.81;

std::vector<session::generation_request> requests_of(const text::tokenizer& tokenizer,
                                                     std::uint32_t tokens) {
  std::vector<session::generation_request> out;
  const auto add = [&](const auto& prompt) {
    const auto ids = text::tokenize(tokenizer, prompt);
    BOOST_REQUIRE(ids);
    out.emplace_back().prompt = *ids;
    out.back().new_tokens_max = tokens;
  };
  for (const char* opening : openings) add(text::continuation_prompt(opening));
  for (const char* question : questions) {
    std::vector<text::chat_message> turns(1);
    turns.front().content = question;
    const auto prompt = text::encode_prompt(turns, {});
    BOOST_REQUIRE(prompt);
    add(*prompt);
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_acceptance)

BOOST_AUTO_TEST_CASE(is_that_of_the_model_card) {
  const std::string folder = CEDAR_SOURCE_DIR "/configs/models/cedar-tiny";
  const auto backend = kernels::make_backend("cpu");
  BOOST_REQUIRE(backend);
  const auto source = stage::model_source::open(folder);
  BOOST_REQUIRE(source);
  const auto tokenizer = text::tokenizer::load(folder + "/tokenizer.json");
  BOOST_REQUIRE(tokenizer);
  local::engine_options options{.rows_per_step = 128, .requests_max = 20, .context_max = 1024};
  options.draft_tokens = (*source)->config().dspark.block_size;
  const auto engine = local::local_engine::open(**source, *backend, options);
  BOOST_REQUIRE(engine);
  const auto used = (*engine)->generate(requests_of(*tokenizer, 128), {});
  BOOST_REQUIRE(used);
  double tokens = 0;
  double steps = 0;
  for (const session::usage& one : *used) {
    const double made = one.completion_tokens - 1;
    BOOST_TEST_MESSAGE(made << " tokens, " << made / (made - one.accepted_tokens) << " a step");
    tokens += made;
    steps += made - one.accepted_tokens;
  }
  BOOST_TEST_MESSAGE("all: " << tokens / steps << " tokens a step");
  BOOST_TEST(tokens / steps == published, boost::test_tools::tolerance(0.03));
}

BOOST_AUTO_TEST_SUITE_END()
