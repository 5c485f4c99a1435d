// Goal: how rows are cut into steps, what else a step holds and in which order changes no bit of a
// row. Method: logits of tiny-12 against the same ids as one request in one step.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <random>

#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

constexpr request_id one{1}, two{2};

}  // namespace

BOOST_AUTO_TEST_SUITE(chunking)

BOOST_AUTO_TEST_CASE(every_chunk_size_gives_the_bits_of_one_chunk) {
  // Longer than the window of 16 and its ring, and odd: the last group of ratio 2 stays open.
  constexpr std::uint32_t rows = 25;
  const auto ids = random_tokens(1, rows);
  const auto whole = logits_alone(ids);
  for (std::uint32_t chunk = 1; chunk < rows; ++chunk) {
    tiny_run run;
    run.ids[one] = ids;
    for (std::uint32_t first = 0; first < rows; first += chunk) {
      run.step({{one, first, std::min(chunk, rows - first)}});
      run.settle();
    }
    for (std::uint32_t p = 0; p < rows; ++p)
      BOOST_REQUIRE_MESSAGE(same(run.logits.at({one, p}), whole[p]),
                            "chunks of " << chunk << ", row " << p);
  }
}

BOOST_AUTO_TEST_CASE(chunks_need_not_wait_for_verdicts) {
  constexpr std::uint32_t rows = 30;
  const auto ids = random_tokens(2, rows);
  const auto whole = logits_alone(ids);
  tiny_run run;
  run.ids[one] = ids;
  for (std::uint32_t first = 0; first < rows; first += 7)
    run.step({{one, first, std::min(7U, rows - first)}});
  run.settle();
  for (std::uint32_t p = 0; p < rows; ++p) BOOST_REQUIRE(same(run.logits.at({one, p}), whole[p]));
}

BOOST_AUTO_TEST_CASE(two_requests_in_one_step_do_not_see_each_other) {
  constexpr std::uint32_t rows = 24;
  const auto first_ids = random_tokens(3, rows), second_ids = random_tokens(4, rows);
  const auto first_alone = logits_alone(first_ids), second_alone = logits_alone(second_ids);
  for (const bool swapped : {false, true}) {
    tiny_run run;
    run.ids = {{one, first_ids}, {two, second_ids}};
    for (std::uint32_t at = 0; at < rows; at += 6) {
      std::vector<rows_of> spans{{one, at, 6}, {two, at, 6}};
      if (swapped) std::swap(spans[0], spans[1]);
      run.step(spans);
      run.settle();
    }
    for (std::uint32_t p = 0; p < rows; ++p) {
      BOOST_REQUIRE(same(run.logits.at({one, p}), first_alone[p]));
      BOOST_REQUIRE(same(run.logits.at({two, p}), second_alone[p]));
    }
  }
}

BOOST_DATA_TEST_CASE(random_mixtures_of_requests_and_chunks_change_no_bit,
                     boost::unit_test::data::xrange(1, 4), seed) {
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  tiny_run run({64, 6, 64});
  std::map<request_id, std::uint32_t> written;
  std::map<request_id, std::vector<std::vector<float>>> alone;
  for (std::uint64_t id = 1; id <= 5; ++id) {
    run.ids[request_id{id}] = random_tokens(random(), 1 + random() % 40);
    alone[request_id{id}] = logits_alone(run.ids.at(request_id{id}));
    written[request_id{id}] = 0;
  }
  while (!written.empty()) {
    std::vector<rows_of> spans;
    for (const auto& [id, done] : written) {
      const auto left = static_cast<std::uint32_t>(run.ids.at(id).size()) - done;
      const auto count = static_cast<std::uint32_t>(random() % 2 * (1 + random() % left));
      if (count > 0) spans.push_back({id, done, count});
    }
    if (spans.empty()) continue;
    std::shuffle(spans.begin(), spans.end(), random);
    run.step(spans);
    run.settle();
    for (const rows_of& span : spans) {
      written[span.request] += span.count;
      if (written[span.request] < run.ids.at(span.request).size()) continue;
      run.finish(span.request);
      written.erase(span.request);
    }
  }
  for (const auto& [row, values] : run.logits)
    BOOST_REQUIRE_MESSAGE(same(values, alone.at(row.first)[row.second]),
                          "request " << row.first.value << ", row " << row.second);
  BOOST_TEST(run.engine->layers().pages().pages_in_use() == 0U);
  BOOST_TEST(run.engine->layers().sequences() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
