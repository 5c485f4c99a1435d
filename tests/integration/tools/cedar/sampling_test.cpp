// Goal: a seed gives one answer, in one process and in two, alone and among others, in any chunks;
// seeds differ; what is wrong with options is said. Method: `cedar run` of cedar-tiny.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"

using namespace cedar::test;
using nlohmann::json;

namespace {

const std::vector<std::string> prompts{
    R"({"prompt": "Once upon a time", "max_tokens": 40, "temperature": 0.8, "seed": 1})",
    R"({"prompt": "Once upon a time", "max_tokens": 40, "temperature": 0.8, "seed": 2})",
    R"({"prompt": "Tom and Lily went to the park.", "max_tokens": 30, "temperature": 1.2,
        "top_k": 50, "top_p": 0.9, "min_p": 0.02, "seed": 18446744073709551615})",
    R"({"prompt": "What is your name?", "chat": true, "max_tokens": 30, "temperature": 1,
        "repetition_penalty": 1.3, "frequency_penalty": 0.4, "presence_penalty": -0.3,
        "logit_bias": {"300": 2, "301": -100}, "seed": 7})",
    R"({"prompt": "The sun and the moon", "max_tokens": 20})",
    R"({"prompt": "a a a a", "max_tokens": 20, "presence_penalty": 1.5})",
    R"({"prompt": "What is your name?", "chat": true, "max_tokens": 60, "min_tokens": 40})",
};

/// A prompts file; JSON written over several lines is one line of it.
std::string lines_of(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += json::parse(text).dump() + "\n";
  return out;
}

struct workplace {
  temporary_folder folder;

  finished cedar(std::vector<std::string> arguments, const std::string& topology = {}) const {
    arguments.insert(arguments.begin(), {"run", "-m", checkpoint_of("cedar-tiny").string()});
    if (!topology.empty())
      arguments.insert(arguments.end(), {"--topology", folder.write("t.yaml", topology).string()});
    return run(CEDAR_PROGRAM, arguments);
  }

  std::vector<json> answers(const std::vector<std::string>& texts,
                            const std::vector<std::string>& more = {},
                            const std::string& topology = {}) const {
    std::vector<std::string> arguments{"--prompts",
                                       folder.write("p.jsonl", lines_of(texts)).string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const finished ran = cedar(arguments, topology);
    BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
    std::vector<json> out;
    std::istringstream lines(ran.output);
    for (std::string line; std::getline(lines, line);) out.push_back(json::parse(line));
    BOOST_TEST_REQUIRE(out.size() == texts.size());
    return out;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(sampling)

BOOST_AUTO_TEST_CASE(gives_the_answer_of_the_seed_everywhere) {
  const workplace work;
  std::vector<json> alone;
  for (const std::string& prompt : prompts) alone.push_back(work.answers({prompt}).at(0));
  const auto check = [&](const std::vector<json>& together) {
    for (std::size_t i = 0; i < alone.size(); ++i)
      for (const char* key : {"text", "tokens", "finish_reason", "usage"})
        BOOST_TEST(together[i].at(key) == alone[i].at(key), "prompt " << i << ": " << key);
  };
  check(work.answers(prompts));
  check(work.answers(prompts, {"--rows-per-step", "3"}));
  check(work.answers(prompts, {}, topology_text({})));
  topology_options chunked;
  chunked.more = "limits: {requests: 2, rows_per_step: 5, steps_in_flight: 3}";
  check(work.answers(prompts, {}, topology_text(chunked)));

  BOOST_TEST(alone[0].at("tokens") != alone[1].at("tokens"));
  BOOST_TEST(alone[1].at("seed") == 2U);
  BOOST_TEST(alone[2].at("seed") == 18446744073709551615U);
  BOOST_TEST(!alone[4].contains("seed"));
  BOOST_TEST(alone[6].at("usage").at("completion_tokens") >= 40);
}

BOOST_AUTO_TEST_CASE(takes_options_of_the_command_line_unless_a_line_has_its_own) {
  const workplace work;
  const std::vector<std::string> more{"--temperature", "0.8", "--seed", "2", "--top-k", "0"};
  const auto own = work.answers({prompts[1]});
  const auto common =
      work.answers({R"({"prompt": "Once upon a time", "max_tokens": 40})",
                    R"({"prompt": "Once upon a time", "max_tokens": 40, "seed": 1})"},
                   more);
  BOOST_TEST(common[0].at("tokens") == own[0].at("tokens"));
  BOOST_TEST(common[1].at("tokens") == work.answers({prompts[0]})[0].at("tokens"));
  const finished one = work.cedar(
      {"-p", "Once upon a time", "--max-tokens", "40", "--temperature", "0.8", "--seed", "2"});
  BOOST_TEST(one.output == own[0].at("text").get<std::string>() + "\n");
  BOOST_TEST(one.errors == "cedar: seed 2\n");
}

BOOST_AUTO_TEST_CASE(draws_a_missing_seed_for_each_prompt_and_tells_it) {
  const workplace work;
  const std::string line = R"({"prompt": "Once upon a time", "max_tokens": 30, "temperature": 1})";
  const auto drawn = work.answers({line, line, line});
  std::set<std::uint64_t> seeds;
  for (const json& answer : drawn) seeds.insert(answer.at("seed").get<std::uint64_t>());
  BOOST_TEST(seeds.size() == 3U);
  json again = json::parse(line);
  again["seed"] = drawn[1].at("seed");
  BOOST_TEST(work.answers({again.dump()})[0].at("tokens") == drawn[1].at("tokens"));
}

BOOST_AUTO_TEST_CASE(bans_and_forces_tokens_from_the_command_line) {
  const workplace work;
  const json plain = work.answers({R"({"prompt": "a", "max_tokens": 1})"})[0];
  const int first = plain.at("tokens").at(0);
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"-p", "a", "--max-tokens", "1", "--ignore-eos"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return work.cedar(arguments).output;
  };
  BOOST_TEST(with({"--logit-bias", std::to_string(first) + "=-100"}) != with({}));
  BOOST_TEST(with({"--logit-bias", "300=1000"}) != with({"--logit-bias", "301=1000"}));
  BOOST_TEST(with({"--logit-bias", "300=1000", "--logit-bias", "301=2000"}) ==
             with({"--logit-bias", "301=1000"}));
}

BOOST_AUTO_TEST_CASE(does_not_end_before_the_least_tokens_of_the_command_line) {
  const workplace work;
  const std::vector<std::string> ask{"--chat", "-p", "What is your name?", "--max-tokens", "60"};
  const std::string brief = work.cedar(ask).output;
  std::vector<std::string> more = ask;
  more.insert(more.end(), {"--min-tokens", "40"});
  const std::string longer = work.cedar(more).output;
  BOOST_TEST(longer.starts_with(brief.substr(0, brief.size() - 1)));
  BOOST_TEST(longer.size() > brief.size());
}

BOOST_AUTO_TEST_CASE(is_not_changed_by_drafts) {
  const workplace work;
  const auto plain = work.answers(prompts);
  for (const char* draft : {"fixed:1", "fixed:5"}) {
    const auto drafted = work.answers(prompts, {"--draft", draft});
    std::uint32_t verified = 0;
    std::uint32_t accepted = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      BOOST_TEST(drafted[i].at("tokens") == plain[i].at("tokens"));
      BOOST_TEST(drafted[i].at("finish_reason") == plain[i].at("finish_reason"));
      verified += drafted[i].at("usage").at("drafted_tokens").get<std::uint32_t>();
      accepted += drafted[i].at("usage").at("accepted_tokens").get<std::uint32_t>();
    }
    BOOST_TEST(accepted > verified / 5);
    BOOST_TEST(accepted < verified);
  }
  // As a topology says, and as the option says instead.
  topology_options placed;
  placed.drafter = "node0";
  for (const std::vector<std::string>& option :
       {std::vector<std::string>{}, {"--draft", "fixed:2"}, {"--draft", "off"}}) {
    const auto drafted = work.answers(prompts, option, topology_text(placed));
    std::uint32_t accepted = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      BOOST_TEST(drafted[i].at("tokens") == plain[i].at("tokens"));
      accepted += drafted[i].at("usage").at("accepted_tokens").get<std::uint32_t>();
    }
    BOOST_TEST((accepted > 20) == (option.empty() || option.back() != "off"));
  }
  const finished nobody = work.cedar({"-p", "a", "--draft", "fixed:3"}, topology_text({}));
  BOOST_TEST(nobody.code == 1);
  BOOST_TEST(contains(nobody.errors, "places no drafter; add drafter: {device: DEVICE}"),
             nobody.errors);
  const finished too_long = work.cedar({"-p", "a", "--draft", "fixed:6"}, topology_text(placed));
  BOOST_TEST(too_long.code == 1);
  BOOST_TEST(contains(too_long.errors, "write at most fixed:5"), too_long.errors);

  const finished one = work.cedar({"-p", "Once upon a time", "--draft", "fixed:3"});
  BOOST_TEST(one.output == work.cedar({"-p", "Once upon a time"}).output);
  BOOST_TEST(contains(one.errors, " tokens a step"), one.errors);
  BOOST_TEST(one.output == work.cedar({"-p", "Once upon a time", "--draft", "auto"}).output);
  for (const char* wrong : {"fixed", "fixed:", "fixed:0", "fixed:-1", "fixed:3x", "on"}) {
    const finished refused = work.cedar({"-p", "a", "--draft", wrong});
    BOOST_TEST(refused.code == 2);
    BOOST_TEST(contains(refused.errors, "write off, auto, or fixed:K"), refused.errors);
  }
  const finished long_one = work.cedar({"-p", "a", "--draft", "fixed:6"});
  BOOST_TEST(long_one.code == 1);
  BOOST_TEST(contains(long_one.errors, "longer than the 5 of the model's drafter"),
             long_one.errors);
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong_with_options) {
  const workplace work;
  const auto refused = [&](const std::string& options, const std::string& text) {
    const auto file = work.folder.write("p.jsonl", R"({"prompt": "a", )" + options + "}\n");
    for (const std::string& topology : {std::string{}, topology_text({})}) {
      const finished ran = work.cedar({"--prompts", file.string()}, topology);
      BOOST_TEST(ran.code == 1);
      BOOST_TEST(ran.output == "");
      BOOST_TEST(contains(ran.errors, text), "no \"" << text << "\" in: " << ran.errors);
    }
  };
  refused(R"("temperature": -1)", "temperature is -1; it must be 0 (no sampling) or more");
  refused(R"("top_p": 0)", "top_p is 0; it must be above 0 and at most 1");
  refused(R"("logit_bias": {"99999": 1})",
          "the logit bias of token 99999 is outside the vocabulary of 2048");
  refused(R"("temperature": "hot")", "p.jsonl:1: temperature must be a number");
  refused(R"("top_k": -1)", "p.jsonl:1: top_k must be a whole number, not negative");
  refused(R"("seed": 1.5)", "p.jsonl:1: seed must be a whole number, not negative");
  refused(R"("logit_bias": {"x": 1})", "p.jsonl:1: logit_bias must be an object of token ids");
  refused(R"("top_q": 1)", "unknown key or wrong type: 'top_q'");

  const auto wrong = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"-p", "a"});
    return work.cedar(arguments);
  };
  const finished bias = wrong({"--logit-bias", "17:3"});
  BOOST_TEST(bias.code == 2);
  BOOST_TEST(contains(bias.errors, "17:3 is not TOKEN=BIAS, e.g. 17=-2.5"), bias.errors);
  const finished seed = wrong({"--seed", "-1"});
  BOOST_TEST(seed.code == 2);
  BOOST_TEST(contains(seed.errors, "-1 is not a whole number, 0 or more"), seed.errors);
  const finished negative = wrong({"--min-p", "-0.5"});
  BOOST_TEST(negative.code == 1);
  BOOST_TEST(contains(negative.errors, "min_p is -0.5; it must be between 0 and 1"),
             negative.errors);
}

BOOST_AUTO_TEST_SUITE_END()
