// Goal: a sampled answer depends on its prompt, options and seed alone: not on the other requests,
// on chunks, on rows that were run and taken back, or on the number of the request. Method: whole
// generations of tiny-12 in the local engine, alone and in company.
#include <boost/test/unit_test.hpp>
#include <set>

#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

using tokens = std::vector<token_id>;

session::generation_request asked(std::uint64_t prompt, std::uint64_t seed,
                                  std::uint32_t choice = 0) {
  session::generation_request out;
  out.prompt = random_tokens(prompt, 9 + prompt);
  out.new_tokens_max = 12;
  out.ignore_eos = true;
  out.sampling.temperature = 0.9F;
  out.sampling.seed = seed;
  out.sampling.choice = choice;
  return out;
}

/// Requests of every kind of option.
std::vector<session::generation_request> many() {
  std::vector<session::generation_request> out{asked(1, 7), asked(2, 7), asked(3, 8), asked(4, 9),
                                               asked(5, 10)};
  out[1].sampling.top_k = 40;
  out[1].sampling.top_p = 0.9F;
  out[2].sampling.min_p = 0.02F;
  out[2].sampling.repetition_penalty = 1.3F;
  out[3].sampling.presence_penalty = 1.5F;
  out[3].sampling.frequency_penalty = 0.5F;
  out[3].sampling.bias = {{100, 3}, {200, -3}};
  out[4].sampling = {};
  return out;
}

std::vector<tokens> answers(const std::vector<session::generation_request>& requests,
                            std::uint32_t rows_per_step = 64, std::uint32_t requests_max = 4) {
  auto engine =
      local::local_engine::open(tiny_model(), cpu_backend(), {rows_per_step, requests_max, 256});
  BOOST_REQUIRE(engine);
  std::vector<tokens> out(requests.size());
  session::generation_sink sink;
  sink.on_row = [&](std::size_t index, const session::row_event& row) {
    if (!row.in_prompt) out[index].push_back(row.token);
  };
  const auto used = (*engine)->generate(requests, sink);
  BOOST_REQUIRE_MESSAGE(used, (used ? "" : used.error().message));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sampled_generation)

BOOST_AUTO_TEST_CASE(gives_each_request_of_a_batch_the_answer_it_gets_alone_in_any_chunks) {
  const auto requests = many();
  std::vector<tokens> alone;
  for (const auto& request : requests) alone.push_back(answers({request}).at(0));
  for (const auto& [rows, together] : {std::pair{64U, 4U}, {5U, 2U}, {1U, 4U}, {7U, 16U}}) {
    const auto batch = answers(requests, rows, together);
    for (std::size_t i = 0; i < requests.size(); ++i)
      BOOST_TEST(batch[i] == alone[i], "request " << i << ", " << rows << " rows a step");
  }
}

BOOST_AUTO_TEST_CASE(differs_by_seed_and_by_choice_alone) {
  const auto out = answers({asked(1, 7), asked(1, 7), asked(1, 8), asked(1, 7, 1)});
  BOOST_TEST(out[0] == out[1]);
  BOOST_TEST(std::set<tokens>(out.begin(), out.end()).size() == 3U);
}

BOOST_AUTO_TEST_CASE(of_tokens_that_are_fed_back_as_a_prompt_goes_on_alike) {
  // Position and seed decide, not where the prompt ends; penalties of answer tokens would see it.
  auto request = asked(2, 5);
  request.sampling.repetition_penalty = 1.2F;
  const tokens whole = answers({request}).at(0);
  auto later = request;
  later.prompt.insert(later.prompt.end(), whole.begin(), whole.begin() + 5);
  later.new_tokens_max -= 5;
  const tokens rest = answers({later}).at(0);
  BOOST_TEST(rest == tokens(whole.begin() + 5, whole.end()), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_head_forgets_what_is_over) {
  // A second generation numbers its requests anew, from the same numbers.
  auto engine = local::local_engine::open(tiny_model(), cpu_backend(), {64, 4, 256});
  BOOST_REQUIRE(engine);
  const auto run = [&](const session::generation_request& request) {
    tokens out;
    session::generation_sink sink;
    sink.on_row = [&](std::size_t, const session::row_event& row) { out.push_back(row.token); };
    BOOST_REQUIRE((*engine)->generate({request}, sink));
    return out;
  };
  auto greedy = asked(1, 7);
  greedy.sampling = {};
  const tokens before = run(greedy);
  const tokens sampled = run(asked(1, 7));
  BOOST_TEST(run(greedy) == before, boost::test_tools::per_element());
  BOOST_TEST(sampled != before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rows_that_were_taken_back_are_not_counted) {
  // Rows of a step are proposals like those of one row at a time; run again from the middle with
  // other tokens, they are those of the tokens that stand.
  const tokens ids = random_tokens(6, 20);
  tokens drafts = ids;
  for (std::size_t i = 12; i < drafts.size(); ++i) drafts[i] = drafts[3];
  flow::request_sampling sampling{request_id{1}, 8, {}};
  sampling.options.temperature = 1;
  sampling.options.repetition_penalty = 1.5F;
  sampling.options.frequency_penalty = 1;
  const auto step = [&](local::local_engine& engine, std::uint64_t number, const tokens& of,
                        std::uint32_t first, std::uint32_t count) {
    auto table = step_of(number, {{request_id{1}, of}}, {{request_id{1}, first, count}});
    if (first == 0) table.sampling = {sampling};
    auto made = engine.run(table, {});
    BOOST_REQUIRE(made);
    return std::move(made->tokens);
  };
  tiny_run straight, detour;
  auto expected = step(*straight.engine, 1, ids, 0, 12);
  for (std::uint32_t i = 12; i < 20; ++i) {
    const auto more = step(*straight.engine, i, ids, i, 1);
    expected.insert(expected.end(), more.begin(), more.end());
  }
  auto actual = step(*detour.engine, 1, ids, 0, 12);
  step(*detour.engine, 2, drafts, 12, 4);
  detour.engine->apply({step_id{2}, {}, {{request_id{1}, 12, false}}});
  const auto more = step(*detour.engine, 3, ids, 12, 8);
  actual.insert(actual.end(), more.begin(), more.end());
  BOOST_TEST((actual == expected));
}

BOOST_AUTO_TEST_SUITE_END()
