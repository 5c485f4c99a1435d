// Goal: however the index keys of owners are divided among indexers, rows choose what they choose
// of a whole index, bit for bit: ties, candidates, bounded prompts, rejected rows and kept prefixes
// included; an indexer holds its share and no more; what comes too early waits, and what cannot be
// is refused and changes nothing. Method: tiny-12 in stages and indexers by hand against the whole
// model, over random divisions; keys with scores that tie, against one shard that has them all.
#include <boost/test/unit_test.hpp>
#include <random>

#include "runtime/stage/row_layout.hpp"
#include "tests/unit/runtime/stage/split_pipeline.hpp"

using namespace cedar;
using namespace cedar::test;
using flow::row_block;
using flow::row_kind;
using owner_parts = std::map<std::uint32_t, std::uint32_t>;

namespace {

constexpr std::uint32_t layers = 12;
constexpr request_id one{1}, two{2};
const std::set<std::uint32_t> no_gather, all_gather{2, 4, 6};

const std::map<request_id, std::vector<token_id>>& ids_of_requests() {
  static const std::map<request_id, std::vector<token_id>> ids{{one, random_tokens(1, 75)},
                                                               {two, random_tokens(2, 40)}};
  return ids;
}

flow::step_table wanted_step(std::uint64_t number, const std::vector<rows_of>& rows, bool bounded) {
  flow::step_table table = step_of(number, ids_of_requests(), rows);
  for (flow::row_span& span : table.spans) {
    if (bounded && span.request == one) span.decoder_begin = 70 - tiny_model().config().window;
    span.logits_from = span.decoder_from();
  }
  return table;
}

/// Chunks of two requests, of which the first of a bounded one does not walk the decoder; then rows
/// one by one, of which a verdict takes some back.
std::vector<std::vector<float>> logits_of_steps(split_pipeline& pipeline, bool bounded) {
  std::vector<std::vector<float>> logits;
  std::uint64_t step = 0;
  const auto run = [&](const std::vector<rows_of>& rows, std::uint32_t taken_back) {
    const flow::step_table table = wanted_step(++step, rows, bounded);
    std::ranges::move(pipeline.run(table), std::back_inserter(logits));
    flow::verdict verdict{table.step, {}, {}};
    for (const flow::row_span& span : table.spans)
      verdict.commitments.push_back(
          {span.request, span.first_position + span.rows_count - taken_back, false});
    pipeline.apply(verdict);
  };
  run({{one, 0, 31}}, 0);
  run({{one, 31, 39}, {two, 0, 9}}, 0);
  run({{one, 70, 4}, {two, 9, 5}}, 3);
  run({{two, 11, 2}, {one, 71, 2}}, 1);
  for (std::uint32_t i = 0; i < 3; ++i) run({{one, 72 + i, 1}, {two, 12 + i, 1}}, 0);
  return logits;
}

const std::vector<std::vector<float>>& whole_index(bool bounded) {
  static std::map<bool, std::vector<std::vector<float>>> known;
  auto& logits = known[bounded];
  if (logits.empty()) {
    split_pipeline whole({{0, layers - 1}}, {});
    logits = logits_of_steps(whole, bounded);
  }
  return logits;
}

void check_divided(split_pipeline& pipeline, bool bounded) {
  const auto logits = logits_of_steps(pipeline, bounded);
  BOOST_REQUIRE_EQUAL(logits.size(), whole_index(bounded).size());
  for (std::size_t row = 0; row < logits.size(); ++row)
    BOOST_REQUIRE_MESSAGE(same(logits[row], whole_index(bounded)[row]), "wanted row " << row);
}

/// An indexer of owner 6 with a request of `count` rows, as its stage would feed it.
struct fed_indexer {
  explicit fed_indexer(const model::index_shard& shard, std::uint32_t context = 256)
      : stage(tiny_model().make_indexer(cpu_backend(), {shard, 2, context})) {}

  static flow::step_table rows(std::uint64_t step, std::uint32_t first, std::uint32_t count) {
    return step_of(step, {{one, random_tokens(1, 256)}}, {{one, first, count}});
  }
  /// Keys of `keys` that the shard holds.
  std::optional<row_block> keys_for(const flow::step_table& table,
                                    std::span<const std::byte> keys) const {
    return stage::make_keys_block({tiny_model().config(), tiny_model().schedule()}, table,
                                  stage->shard(), keys);
  }
  result<void> feed(const flow::step_table& table, std::span<const std::byte> keys) {
    const auto block = keys_for(table, keys);
    return stage->extend(table, block ? &*block : nullptr);
  }

  std::unique_ptr<stage::indexer_stage> stage;
};

std::size_t key_bytes() {
  return stage::row_bytes(row_kind::index_keys, tiny_model().config());
}

/// Keys of which many are alike: random ones of a few, so that scores tie.
std::vector<std::byte> tied_keys(std::uint32_t count, std::mt19937& random) {
  std::vector<std::vector<std::byte>> kinds(5, std::vector<std::byte>(key_bytes()));
  for (auto& kind : kinds) {
    for (std::byte& code : kind) code = static_cast<std::byte>(random() % 256);
    // Scales near one, after the codes.
    for (std::size_t i = tiny_model().config().index_head_dim / 2; i < kind.size(); ++i)
      kind[i] = static_cast<std::byte>(126 + random() % 3);
  }
  std::vector<std::byte> out;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& kind = kinds[random() % kinds.size()];
    out.insert(out.end(), kind.begin(), kind.end());
  }
  return out;
}

model::index_query random_query(kernels::arena& scratch, std::size_t rows, std::mt19937& random) {
  const auto& config = tiny_model().config();
  const std::size_t heads = config.index_heads;
  model::index_query query{scratch.take<std::byte>(rows * heads, key_bytes()),
                           scratch.take<kernels::bf16>(rows, heads)};
  for (std::size_t i = 0; i < rows * heads; ++i) {
    const auto packed = tied_keys(1, random);
    std::ranges::copy(packed, query.packed.row_data(i));
    query.weights.data[i] = kernels::to_bf16((static_cast<float>(random() % 200) - 100.0F) / 64.0F);
  }
  return query;
}

/// What layers 6 and 8 choose of keys that `parts` shards hold, row by row.
stage::step_selections choices_of(std::uint32_t parts, std::uint32_t rows, std::uint32_t seed) {
  std::mt19937 random(seed);
  const stage::shared_context c{tiny_model().config(), tiny_model().schedule()};
  const auto shards = shards_of({{6, parts}});
  const auto keys = tied_keys(rows, random);
  const flow::step_table table = fed_indexer::rows(1, 0, rows);
  std::vector<fed_indexer> indexers;
  for (const auto& shard : shards) {
    indexers.emplace_back(shard);
    BOOST_REQUIRE(indexers.back().feed(table, keys).has_value());
  }
  stage::step_selections chosen;
  stage::awaited_choices awaited(c, shards, 0);
  for (const std::uint32_t layer : {6U, 8U}) {
    kernels::arena scratch;
    std::vector<row_block> asked;
    awaited.ask(table, layer, random_query(scratch, rows, random), chosen.candidates, asked);
    for (const row_block& request : asked) {
      const auto answer = indexers[request.slice].stage->answer(request);
      BOOST_REQUIRE_MESSAGE(answer, (answer ? "" : answer.error().message));
      const auto taken = awaited.take(*answer);
      BOOST_REQUIRE_MESSAGE(taken, (taken ? "" : taken.error().message));
    }
    BOOST_REQUIRE(!awaited.any());
    awaited.settle(chosen);
  }
  return chosen;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(indexers)

BOOST_AUTO_TEST_CASE(give_the_bits_of_a_whole_index) {
  for (const bool bounded : {false, true}) {
    split_pipeline one_stage({{0, layers - 1}}, {}, {}, {{2, 2}, {4, 1}, {6, 3}});
    check_divided(one_stage, bounded);
    split_pipeline stages({{0, 6}, {7, 8}, {9, layers - 1}}, all_gather, {}, {{6, 3}});
    check_divided(stages, bounded);
  }
}

BOOST_AUTO_TEST_CASE(give_the_bits_of_a_whole_index_in_random_divisions) {
  std::mt19937 random(20261202);
  for (int round = 0; round < 10; ++round) {
    const auto cut = static_cast<std::uint32_t>(random() % (layers - 1));
    const bool bounded = random() % 2 == 0;
    owner_parts parts;
    for (const std::uint32_t owner : {2U, 4U, 6U})
      if (const auto count = static_cast<std::uint32_t>(random() % 6); count > 0)
        parts[owner] = count;
    split_pipeline pipeline({{0, cut}, {cut + 1, layers - 1}},
                            random() % 2 == 0 ? all_gather : no_gather, {}, parts);
    BOOST_TEST_CONTEXT("round " << round << ", cut after " << cut) check_divided(pipeline, bounded);
  }
}

BOOST_AUTO_TEST_CASE(choose_as_one_among_scores_that_tie) {
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    const stage::step_selections expected = choices_of(1, 90, seed);
    for (const std::uint32_t parts : {2U, 3U, 7U, 40U}) {
      const stage::step_selections chosen = choices_of(parts, 90, seed);
      BOOST_TEST((chosen.by_source.at(6) == expected.by_source.at(6)), parts << " parts");
      BOOST_TEST((chosen.by_source.at(8) == expected.by_source.at(8)), parts << " parts");
      for (std::size_t row = 0; row < 90; ++row)
        BOOST_TEST_REQUIRE((chosen.candidates[row].blocks == expected.candidates[row].blocks));
    }
  }
}

BOOST_AUTO_TEST_CASE(choose_as_the_kernels_of_a_whole_index_do) {
  const auto& config = tiny_model().config();
  const stage::step_selections chosen = choices_of(3, 60, 9);
  std::mt19937 random(9);
  const auto keys = tied_keys(60, random);
  kernels::arena scratch;
  const model::index_query query = random_query(scratch, 60, random);
  const std::byte* const first = keys.data();
  for (std::uint32_t row = 0; row < 60; ++row) {
    std::vector<kernels::bf16> scores(row + 1);
    cpu_backend().index_scores(
        {scores,
         query.packed.rows_from(row * config.index_heads, config.index_heads),
         query.weights.row(row),
         {&first, 1},
         config.index_head_dim,
         60});
    std::vector<std::uint32_t> positions;
    kernels::select_top_k(scores, config.index_topk, positions);
    kernels::candidate_pool pool;
    kernels::select_candidates(scores, config.candidate_block_size, config.candidate_blocks, pool);
    BOOST_TEST_REQUIRE((chosen.by_source.at(6)[row] == positions));
    BOOST_TEST_REQUIRE((chosen.candidates[row].blocks == pool.blocks));
  }
}

BOOST_AUTO_TEST_CASE(are_asked_about_rows_that_see_their_entries_and_get_each_key_once) {
  const auto& config = tiny_model().config();
  split_pipeline pipeline({{0, layers - 1}}, {}, {}, {{6, 3}});
  pipeline.run(wanted_step(1, {{one, 0, 31}}, false));
  const auto bytes = [&](row_kind kind) { return std::uint64_t{stage::row_bytes(kind, config)}; };
  // Blocks of 4: rows see the first shard's from the first on, the second's after 4, then 8.
  const std::uint64_t rows = 31 + 27 + 23;
  const auto [keys, key_sum] = pipeline.traffic[row_kind::index_keys];
  BOOST_TEST(keys == 3U);
  BOOST_TEST(key_sum == 31 * bytes(row_kind::index_keys));
  BOOST_TEST(pipeline.traffic[row_kind::index_query].second == rows * bytes(row_kind::index_query));
  BOOST_TEST(pipeline.traffic[row_kind::pool_choice].second == rows * bytes(row_kind::pool_choice));
  BOOST_TEST(pipeline.traffic[row_kind::pool_query].second ==
             2 * rows * bytes(row_kind::pool_query));
  BOOST_TEST(pipeline.traffic[row_kind::index_choice].first == 6U);
  // A row whose new key is the second shard's.
  pipeline.run(wanted_step(2, {{one, 31, 1}}, false));
  BOOST_TEST(pipeline.traffic[row_kind::index_keys].first == 4U);
  BOOST_TEST(pipeline.indexers[1]->caches().pages == 64 * key_bytes());
}

BOOST_AUTO_TEST_CASE(hold_their_share_and_leave_the_stage_none) {
  stage::layer_stage_options options{0, layers - 1, 4, 256};
  options.indexers = shards_of({{2, 2}, {6, 3}});
  const auto pages = stage::pages_needed(tiny_model().schedule(), options);
  BOOST_TEST(pages.whole == 4U * 2);  // owner 4: 128 entries
  BOOST_TEST(pages.entries == 4U * (2 + 4));
  BOOST_TEST(pages.keys == 0U);
  std::vector<std::size_t> shares;
  for (const auto& shard : options.indexers)
    shares.push_back(stage::key_pages_needed(tiny_model().schedule(), {shard, 4, 256}));
  // 64 entries of 128; 88, 84 and 84 of 256.
  BOOST_TEST(shares == (std::vector<std::size_t>{4, 4, 8, 8, 8}), boost::test_tools::per_element());
  // Two granules of 128 positions for all four: a third of four pages, and what each has more.
  const auto little = stage::key_pages_needed(tiny_model().schedule(),
                                              {options.indexers[2], 4, 4096, std::uint64_t{2}});
  BOOST_TEST(little == 2U + 4 * 3);
}

BOOST_AUTO_TEST_CASE(begin_with_prefixes_that_were_kept) {
  constexpr std::uint32_t stored = 130;
  const auto ids = random_tokens(3, 150);
  const auto run = [&](split_pipeline& pipeline) {
    flow::step_table table = step_of(1, {{one, ids}}, {{one, 0, stored + 1}});
    table.spans[0].logits_from = stored;
    pipeline.run(table);
    pipeline.apply({step_id{1}, {}, {{one, stored + 1, true, prefix_id{5}, stored}}});
    std::vector<std::vector<float>> logits;
    std::uint32_t from = stored - 20;
    for (std::uint64_t step = 2; from < 150; ++step) {
      const std::uint32_t count = from < stored ? 22 : 9;
      flow::step_table next = step_of(step, {{two, ids}}, {{two, from, count}});
      flow::row_span& span = next.spans[0];
      span.begin = span.decoder_begin = stored - 20;
      span.stored = stored;
      span.logits_from = std::max(from, stored) - from;
      if (span.begins()) next.prefixes = {{two, prefix_id{5}}};
      std::ranges::move(pipeline.run(next), std::back_inserter(logits));
      from += count;
    }
    return logits;
  };
  split_pipeline whole({{0, layers - 1}}, {});
  split_pipeline divided({{0, 4}, {5, layers - 1}}, all_gather, {}, {{2, 1}, {4, 3}, {6, 2}});
  const auto expected = run(whole);
  const auto logits = run(divided);
  BOOST_REQUIRE_EQUAL(logits.size(), 20U);
  for (std::size_t row = 0; row < logits.size(); ++row)
    BOOST_TEST_REQUIRE(same(logits[row], expected[row]));
  // 66 and 64 keys of the prefix, 76 and 74 of the request: what fills a page is shared, the rest
  // is copied.
  const auto held = [&](std::size_t shard) { return divided.indexers[shard]->caches(); };
  BOOST_TEST((held(4) == cache_bytes{3 * 64 * key_bytes(), 2 * 64 * key_bytes(), 0}));
  BOOST_TEST((held(5) == cache_bytes{2 * 64 * key_bytes(), 64 * key_bytes(), 0}));
}

BOOST_AUTO_TEST_CASE(refuse_steps_that_do_not_follow_and_stay_as_they_were) {
  std::mt19937 random(1);
  fed_indexer indexer(shards_of({{6, 2}})[1], 32);
  const auto keys = tied_keys(64, random);
  const auto refused = [&](const flow::step_table& table, const row_block* block,
                           const std::string& why) {
    const std::size_t pages = indexer.stage->pages().pages_in_use();
    const auto taken = indexer.stage->extend(table, block);
    BOOST_REQUIRE(!taken);
    BOOST_TEST(taken.error().message.find(why) != std::string::npos, taken.error().message);
    BOOST_TEST(indexer.stage->pages().pages_in_use() == pages);
  };
  refused(fed_indexer::rows(1, 3, 2), nullptr, "is unknown here");
  BOOST_TEST(indexer.stage->sequences() == 0U);
  const auto table = fed_indexer::rows(1, 0, 20);
  const auto block = indexer.keys_for(table, keys);
  refused(fed_indexer::rows(1, 0, 33), nullptr, "the context holds 32");
  for (const int what : {0, 1, 2, 3, 4, 5}) {
    row_block bad = *block;
    if (what == 0) bad.layer = 4;
    if (what == 1) bad.slice = 0;
    if (what == 2) --bad.rows_count;
    if (what == 3) ++bad.row_bytes;
    if (what == 4) bad.payload = nullptr;
    if (what == 5) bad.kind = row_kind::shared_kv;
    refused(table, &bad, "not the entries of its spans that are here");
    BOOST_TEST(indexer.stage->sequences() == 0U);
  }
  row_block other = *block;
  other.step = step_id{9};
  refused(table, &other, "not those of the step");
  BOOST_REQUIRE(indexer.stage->extend(table, &*block));
  refused(fed_indexer::rows(2, 21, 1), nullptr, "has 20 rows");
  BOOST_REQUIRE(indexer.stage->apply({step_id{1}, {}, {{one, 20, true}}}));
  BOOST_TEST(indexer.stage->pages().pages_in_use() == 0U);
}

BOOST_AUTO_TEST_CASE(wait_with_what_comes_before_its_step) {
  std::mt19937 random(1);
  const auto shards = shards_of({{6, 1}});
  const stage::shared_context c{tiny_model().config(), tiny_model().schedule()};
  const fed_indexer maker(shards[0]);
  const auto unit =
      stage::make_indexer_unit(tiny_model().make_indexer(cpu_backend(), {shards[0], 2, 256}), 2);
  const auto keys = tied_keys(9, random);
  const flow::step_table table = fed_indexer::rows(1, 0, 9);
  kernels::arena scratch;
  stage::awaited_choices awaited(c, shards, 0);
  std::vector<row_block> asked;
  awaited.ask(table, 6, random_query(scratch, 9, random), {}, asked);
  const auto take = [&](const flow::message& message) {
    auto out = unit->take(message);
    BOOST_REQUIRE_MESSAGE(out, (out ? "" : out.error().message));
    return std::move(*out);
  };
  const auto refusal = [&](const flow::message& message) { return !unit->take(message); };
  BOOST_TEST(!unit->is_input_of_step(asked[0]));
  BOOST_TEST(unit->is_input_of_step(flow::verdict{}));
  BOOST_TEST(take(asked[0]).messages.empty());
  BOOST_TEST(refusal(asked[0]));  // the same stage, unanswered
  const flow::verdict verdict{step_id{1}, {}, {{one, 9, true}}};
  BOOST_TEST(take(verdict).work.empty());
  BOOST_TEST(refusal(verdict));
  BOOST_TEST(take(table).work.empty());
  const stage::unit_output all = take(*maker.keys_for(table, keys));
  BOOST_REQUIRE_EQUAL(all.messages.size(), 1U);
  BOOST_TEST(awaited.take(std::get<row_block>(all.messages[0])).has_value());
  // The keys, the answer, the verdict; the second uses nothing up.
  BOOST_REQUIRE_EQUAL(all.work.size(), 3U);
  BOOST_TEST((all.work[0].done && !all.work[1].done && all.work[2].done));
  BOOST_TEST(unit->caches().pages == 0U);
  BOOST_TEST(refusal(table));  // twice
  BOOST_TEST(refusal(*maker.keys_for(table, keys)));
  BOOST_TEST(refusal(asked[0]));  // of a request that is over
  BOOST_TEST(refusal(flow::proposal{}));
  unit->begin_epoch();
  BOOST_TEST(take(*maker.keys_for(table, keys)).work.empty());
  BOOST_TEST(take(table).work.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
