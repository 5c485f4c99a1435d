// Goal: at every cut and with both kinds of splits, a request that begins with a kept prefix goes
// on with the bits of one that computed it; what a step or a verdict says of prefixes that cannot
// be is refused and changes nothing. Method: tiny-12, steps by hand: one request leaves a prefix,
// another replays the rows that mode exact asks for.
#include <boost/test/unit_test.hpp>

#include "runtime/model/compressor.hpp"
#include "runtime/stage/cache_size.hpp"
#include "tests/unit/runtime/stage/split_pipeline.hpp"
#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

constexpr std::uint32_t stored = 190;
constexpr std::uint32_t rows = 197;
constexpr request_id first{1}, second{2};
constexpr prefix_id kept{5};

const std::vector<token_id>& all_ids() {
  static const std::vector<token_id> ids = random_tokens(3, rows);
  return ids;
}

/// First row of a replay after which every window is exact: window + (window - 1) * (layers - 1)
/// rows before the end of the prefix.
std::uint32_t begin() {
  const model::model_config& config = tiny_model().config();
  return stored - (config.window + (config.window - 1) * (config.layers - 1));
}

flow::step_table leaving_step() {
  auto table = step_of(1, {{first, all_ids()}}, {{first, 0, stored + 1}});
  table.spans[0].logits_from = stored;
  return table;
}

flow::verdict leaving_verdict() {
  return {step_id{1}, {}, {{first, stored + 1, true, kept, stored}}};
}

/// Rows [from, to) of the request that begins with the prefix.
flow::step_table replaying_step(std::uint64_t step, std::uint32_t from, std::uint32_t to) {
  auto table = step_of(step, {{second, all_ids()}}, {{second, from, to - from}});
  flow::row_span& span = table.spans[0];
  span.begin = span.decoder_begin = begin();
  span.stored = stored;
  span.logits_from = std::min(std::max(from, stored), to) - from;
  if (span.begins()) table.prefixes = {{second, kept}};
  return table;
}

const std::vector<std::vector<float>>& expected() {
  static const auto logits = logits_alone(all_ids());
  return logits;
}

void check_cut(const placement& stages, const std::set<std::uint32_t>& gather) {
  split_pipeline pipeline(stages, gather);
  pipeline.run(leaving_step());
  pipeline.apply(leaving_verdict());
  std::vector<std::vector<float>> logits;
  std::uint64_t step = 2;
  std::uint32_t from = begin();
  for (const std::uint32_t to : {begin() + 51, stored - 2, stored + 3, rows}) {
    std::ranges::move(pipeline.run(replaying_step(step++, from, to)), std::back_inserter(logits));
    from = to;
  }
  BOOST_REQUIRE_EQUAL(logits.size(), rows - stored);
  for (std::size_t i = 0; i < logits.size(); ++i)
    BOOST_REQUIRE_MESSAGE(same(logits[i], expected()[stored + i]), "row " << stored + i);
}

/// A whole model that holds the prefix, and what a table makes of it.
struct holder {
  holder() {
    BOOST_REQUIRE(run.engine->run(leaving_step(), {}));
    run.engine->apply(leaving_verdict());
  }
  std::string refusal(const flow::step_table& table) {
    const std::size_t pages = run.engine->layers().pages().pages_in_use();
    const std::size_t sequences = run.engine->layers().sequences();
    const auto made = run.engine->run(table, {});
    BOOST_REQUIRE(!made);
    BOOST_TEST(run.engine->layers().pages().pages_in_use() == pages);
    BOOST_TEST(run.engine->layers().sequences() == sequences);
    return made.error().message;
  }
  tiny_run run{{256, 2, 256}};
};

void check_refused(holder& of, const flow::step_table& table, const std::string& why) {
  const std::string text = of.refusal(table);
  BOOST_TEST(text.find(why) != std::string::npos, text);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(prefixes)

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_AUTO_TEST_CASE(every_cut_in_both_split_modes) {
  for (std::uint32_t cut = 0; cut < 11; ++cut)
    for (const bool gather : {false, true})
      BOOST_TEST_CONTEXT("cut after " << cut << (gather ? ", gather" : ", mirror"))
  check_cut({{0, cut}, {cut + 1, 11}},
            gather ? std::set<std::uint32_t>{2, 4, 6} : std::set<std::uint32_t>{});
}

BOOST_AUTO_TEST_CASE(pages_are_shared_and_freed_with_the_last_who_holds_them) {
  holder of;
  const auto& pages = of.run.engine->layers().pages();
  // Two granules of 128 positions: 1 + 1 + 2 pages each, the second one short of two pages.
  const std::size_t of_prefix = pages.pages_in_use();
  BOOST_TEST(of.run.engine->layers().prefixes() == 1U);
  BOOST_REQUIRE(of.run.engine->run(replaying_step(2, begin(), stored + 2), {}));
  const std::size_t shared = 1 + 1 + 2;  // of the first granule
  BOOST_TEST(pages.pages_in_use() == 2 * of_prefix - shared);

  auto dropping = replaying_step(3, stored + 2, rows);
  dropping.dropped = {kept, prefix_id{77}};  // one that nobody knows is no matter
  BOOST_REQUIRE(of.run.engine->run(dropping, {}));
  BOOST_TEST(of.run.engine->layers().prefixes() == 0U);
  BOOST_TEST(pages.pages_in_use() == of_prefix + 1);  // it has grown into a page
  of.run.engine->apply({step_id{3}, {}, {{second, rows, true}}});
  BOOST_TEST(pages.pages_in_use() == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_held_is_counted_in_bytes) {
  const model::model_config& config = tiny_model().config();
  const std::uint64_t page =
      memory::default_page_entries *
      (kernels::entry_bytes(model::global_entry_format, config.head_dim) +
       kernels::entry_bytes(model::index_entry_format, config.index_head_dim));
  const auto one = stage::cache_of_sequence(config, model::schedule(config), 1);
  const std::uint64_t rings = one.window_bytes + one.pending_bytes;
  holder of;
  const auto seen = [&] { return of.run.engine->caches(); };
  // 190 positions: two pages of each owner of ratio 2, three of the one of ratio 1.
  BOOST_TEST((seen() == cache_bytes{7 * page, 7 * page, 0}));
  BOOST_REQUIRE(of.run.engine->run(replaying_step(2, begin(), stored + 2), {}));
  // One page of 2, one of 2 and two of 1 are shared.
  BOOST_TEST((seen() == cache_bytes{(7 + 3) * page, 7 * page, rings}));
  auto dropping = replaying_step(3, stored + 2, rows);
  dropping.dropped = {kept};
  BOOST_REQUIRE(of.run.engine->run(dropping, {}));
  BOOST_TEST(seen().kept == 0U);
  BOOST_TEST(seen().rings == rings);
  of.run.engine->apply({step_id{3}, {}, {{second, rows, true}}});
  BOOST_TEST((seen() == cache_bytes{}));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_is_refused_and_changes_nothing) {
  holder of;
  auto unknown = replaying_step(2, begin(), rows);
  unknown.prefixes[0].prefix = prefix_id{6};
  check_refused(of, unknown, "begins with 190 positions of a prefix that is not here");
  auto nameless = replaying_step(2, begin(), rows);
  nameless.prefixes.clear();
  check_refused(of, nameless, "a prefix that is not here");
  auto longer = replaying_step(2, begin(), rows);
  longer.spans[0].stored = stored + 2;
  check_refused(of, longer, "begins with 192 positions");
  auto half = replaying_step(2, begin(), rows);
  half.spans[0].stored = stored - 1;
  check_refused(of, half, "begins with 189 positions");
  check_refused(of, replaying_step(2, begin() + 4, rows), "does not begin at position");

  BOOST_REQUIRE(of.run.engine->run(replaying_step(2, begin(), stored), {}));
  auto changed = replaying_step(3, stored, rows);
  changed.spans[0].stored = stored - 2;
  check_refused(of, changed, "began with another prefix");
  BOOST_REQUIRE(of.run.engine->run(replaying_step(3, stored, rows), {}));
}

BOOST_AUTO_TEST_CASE(no_more_rows_are_kept_than_were_written) {
  split_pipeline pipeline({{0, 11}}, {});
  pipeline.run(leaving_step());
  const auto refused =
      pipeline.stages[0]->apply({step_id{1}, {}, {{first, rows, true, kept, rows - 1}}});
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::mismatch));
  BOOST_TEST(pipeline.stages[0]->prefixes() == 0U);
}

BOOST_AUTO_TEST_CASE(a_new_epoch_knows_no_prefix) {
  split_pipeline pipeline({{0, 11}}, {});
  pipeline.run(leaving_step());
  pipeline.apply(leaving_verdict());
  BOOST_TEST(pipeline.stages[0]->prefixes() == 1U);
  pipeline.stages[0]->clear();
  BOOST_TEST(pipeline.stages[0]->prefixes() == 0U);
  BOOST_TEST(pipeline.stages[0]->pages().pages_in_use() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
