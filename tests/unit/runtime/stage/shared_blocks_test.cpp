// Goal: nothing wrong that another stage sends is computed with, and a stage that refused it goes
// on. Method: real blocks of tiny-12 with one lie each; requests for entries that are not there.
#include "runtime/stage/shared_blocks.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <functional>

#include "tests/unit/runtime/stage/split_pipeline.hpp"

using namespace cedar;
using namespace cedar::test;
using flow::row_block;
using flow::row_kind;

namespace {

const request_id one{1};

/// Layers 0-6 made a step of nine rows; layers 7-11 have not begun it.
struct halfway {
  split_pipeline pipeline;
  flow::step_table table = step_of(1, {{one, random_tokens(1, 20)}}, {{one, 0, 9}});
  stage::joined_step step;

  explicit halfway(const std::set<std::uint32_t>& gather = {})
      : pipeline({{0, 6}, {7, 11}}, gather) {
    auto embedding = tiny_model().make_embedding();
    auto engram = tiny_model().make_engram();
    auto made = pipeline.stages[0]->begin(
        {table, embedding->run(table).value(), engram->run(table).value(), {}, {}}, {});
    BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
    step.table = table;
    step.rows = made->back();
    made->pop_back();
    step.shared = std::move(*made);
  }

  row_block& shared(row_kind kind) {
    return *std::ranges::find(step.shared, kind, &row_block::kind);
  }
  /// The second stage refuses the step with a text that holds `part`, and is as it was.
  void check_refused(const std::string& part) {
    const auto made = pipeline.stages[1]->begin(step, {});
    BOOST_REQUIRE(!made.has_value());
    BOOST_TEST((made.error().code == errc::malformed));
    BOOST_TEST(made.error().message.find(part) != std::string::npos, made.error().message);
    BOOST_TEST(pipeline.stages[1]->pages().pages_in_use() == 0U);
    BOOST_TEST(pipeline.stages[1]->sequences() == 0U);
    BOOST_TEST(!pipeline.stages[1]->suspended());
  }
};

/// Changes the numbers of a block of lists.
void edit(row_block& block, const std::function<void(std::span<std::int32_t>)>& change) {
  kernels::buffer copy(block.payload->bytes());
  std::memcpy(copy.data(), block.payload->data(), copy.bytes());
  change({reinterpret_cast<std::int32_t*>(copy.data()), copy.bytes() / sizeof(std::int32_t)});
  block.payload = flow::freeze(std::move(copy));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shared_blocks)

BOOST_AUTO_TEST_CASE(what_a_later_stage_needs_is_there_and_fits) {
  halfway here;
  BOOST_TEST(here.step.shared.size() == 4U);  // entries, keys, selection, candidates of layer 6
  const auto made = here.pipeline.stages[1]->begin(here.step, {});
  BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
  BOOST_TEST((made->back().kind == row_kind::head_input));
}

BOOST_AUTO_TEST_CASE(selections_must_ascend_and_be_visible) {
  const auto lie = [](const std::function<void(std::span<std::int32_t>)>& change) {
    halfway here;
    edit(here.shared(row_kind::selection), change);
    here.check_refused("selection of layer 6");
  };
  lie([](auto numbers) { numbers[0] = 1; });  // row 0 sees entry 0 only
  lie([](auto numbers) { numbers[0] = -7; });
  lie([](auto numbers) { std::swap(numbers[8 * 8], numbers[8 * 8 + 1]); });
  lie([](auto numbers) { numbers[8 * 8 + 1] = numbers[8 * 8]; });
  lie([](auto numbers) { numbers[8 * 8 + 7] = 1 << 30; });
}

BOOST_AUTO_TEST_CASE(candidate_blocks_must_exist) {
  halfway here;
  edit(here.shared(row_kind::candidates), [](auto numbers) { numbers[0] = 1; });
  here.check_refused("candidates of layer 6");
  halfway full_block;  // row 3 sees four entries: block 0 and no part of block 1
  edit(full_block.shared(row_kind::candidates), [](auto numbers) { numbers[3 * 4] = 1; });
  full_block.check_refused("candidates of layer 6");
}

BOOST_AUTO_TEST_CASE(a_refused_step_leaves_requests_as_they_were) {
  const std::map<request_id, std::vector<token_id>> ids{{one, random_tokens(1, 20)}};
  split_pipeline pipeline({{0, 6}, {7, 11}}, {});
  pipeline.run(step_of(1, ids, {{one, 0, 9}}));
  auto& reader = *pipeline.stages[1];
  const std::size_t pages = reader.pages().pages_in_use();
  // Nine more rows, whose input does not have the selection that it should.
  split_pipeline other({{0, 6}, {7, 11}}, {});
  other.run(step_of(1, ids, {{one, 0, 9}}));
  const flow::step_table table = step_of(2, ids, {{one, 9, 9}});
  auto embedding = tiny_model().make_embedding();
  auto engram = tiny_model().make_engram();
  auto made = other.stages[0]->begin(
      {table, embedding->run(table).value(), engram->run(table).value(), {}, {}}, {});
  BOOST_REQUIRE(made.has_value());
  stage::joined_step step{table, made->back(), {}, {}, {}};
  made->pop_back();
  step.shared = *made;
  row_block& selection = *std::ranges::find(step.shared, row_kind::selection, &row_block::kind);
  edit(selection, [](auto numbers) { numbers[0] = 1 << 20; });
  BOOST_TEST(!reader.begin(step, {}).has_value());
  BOOST_TEST(reader.pages().pages_in_use() == pages);
  step.shared = *made;
  BOOST_TEST(reader.begin(step, {}).has_value());  // it continues at row 9 as if nothing had been
}

BOOST_AUTO_TEST_CASE(entries_must_be_those_of_the_rows) {
  for (const row_kind kind : {row_kind::shared_kv, row_kind::index_keys}) {
    halfway fewer;
    --fewer.shared(kind).rows_count;
    fewer.check_refused("layer 6");
    halfway other_width;
    other_width.shared(kind).row_bytes += 1;
    other_width.check_refused("layer 6");
    halfway missing;
    std::erase_if(missing.step.shared, [&](const row_block& b) { return b.kind == kind; });
    missing.check_refused("nothing of the step from layer 6");
    halfway other_spans;
    other_spans.shared(kind).spans[0].request = request_id{9};
    other_spans.check_refused("nothing of the step from layer 6");
  }
}

BOOST_AUTO_TEST_CASE(gathered_entries_must_be_those_asked_for) {
  halfway here({6});
  auto& reader = *here.pipeline.stages[1];
  auto& owner = *here.pipeline.stages[0];
  auto made = reader.begin(here.step, {});
  BOOST_REQUIRE(made.has_value());
  const row_block request = made->back();
  BOOST_REQUIRE((request.kind == row_kind::gather_request));
  BOOST_TEST(reader.suspended());
  const row_block answer = owner.answer(request).value();
  row_block wrong = answer;
  --wrong.rows_count;
  BOOST_TEST(!reader.resume(wrong, {}).has_value());
  wrong = answer;
  wrong.step = step_id{2};
  BOOST_TEST(!reader.resume(wrong, {}).has_value());
  // A verdict may not free the rows that are being computed; others may go.
  BOOST_TEST(!reader.apply({step_id{1}, {}, {{one, 9, true}}}).has_value());
  BOOST_TEST(reader.apply({step_id{1}, {}, {{request_id{5}, 0, true}}}).has_value());
  BOOST_TEST(reader.resume(answer, {}).has_value());
}

BOOST_AUTO_TEST_CASE(an_owner_answers_only_what_it_has) {
  halfway here({6});
  auto made = here.pipeline.stages[1]->begin(here.step, {});
  const row_block request = made->back();
  auto& owner = *here.pipeline.stages[0];
  const auto check = [&](const std::function<void(row_block&)>& change, errc code) {
    row_block other = request;
    change(other);
    const auto answer = owner.answer(other);
    BOOST_REQUIRE(!answer.has_value());
    BOOST_TEST((answer.error().code == code), answer.error().message);
  };
  check([](row_block& block) { block.layer = 4; }, errc::malformed);
  check([](row_block& block) { block.layer = 99; }, errc::malformed);
  check([](row_block& block) { block.spans[0].request = request_id{3}; }, errc::mismatch);
  check([](row_block& block) { edit(block, [](auto numbers) { numbers[0] = 3; }); },
        errc::malformed);
  // Rows far beyond what was written: visible to them by position, but not there.
  check(
      [](row_block& block) {
        block.spans[0].first_position = 100;
        edit(block, [](auto numbers) { numbers[0] = 90; });
      },
      errc::mismatch);
  check(
      [](row_block& block) {  // the first entry that is not there
        block.spans[0].first_position = 100;
        edit(block, [](auto numbers) { numbers[0] = 9; });
      },
      errc::mismatch);
  owner.apply({step_id{1}, {}, {{one, 9, true}}});
  check([](row_block&) {}, errc::mismatch);
}

BOOST_AUTO_TEST_SUITE_END()
