// Goal: whatever is asked of an indexer, or comes from one, is what it must be, or refused by name.
// Method: a true query of layers 6 and 8 and its answer, damaged in one place at a time.
#include "runtime/stage/index_blocks.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <functional>
#include <limits>

#include "runtime/stage/row_layout.hpp"
#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;
using flow::row_block;
using flow::row_kind;
using kernels::bf16;

namespace {

/// Rows 0-19 of a request; the second of two shards, in blocks of 4: entries 4-7, 12-15.
constexpr std::uint32_t rows_count = 20;
constexpr std::uint32_t asking = 16;  // rows from position 4 on
const model::index_shard second_shard{1, 6, 1, 2, 4};
const std::vector<model::index_shard> only_second{second_shard};

stage::shared_context of_tiny() {
  return {tiny_model().config(), tiny_model().schedule()};
}

struct asked_shard {
  explicit asked_shard(std::uint32_t layer) : awaited(of_tiny(), only_second, 3) {
    const auto& config = tiny_model().config();
    table = step_of(7, {{request_id{1}, random_tokens(1, rows_count)}},
                    {{request_id{1}, 0, rows_count}});
    const std::size_t bytes =
        kernels::entry_bytes(kernels::entry_format::fp4_e8m0_32, config.index_head_dim);
    const model::index_query query{scratch.take<std::byte>(rows_count * config.index_heads, bytes),
                                   scratch.take<bf16>(rows_count, config.index_heads)};
    std::memset(query.packed.data, 0x77, rows_count * config.index_heads * bytes);
    for (std::size_t i = 0; i < rows_count * config.index_heads; ++i)
      query.weights.data[i] = kernels::to_bf16(static_cast<float>(i));
    // Rows see up to five blocks.
    for (std::uint32_t row = 0; row < rows_count; ++row) {
      pools.push_back({4, {}});
      for (std::uint32_t block = 0; block <= row / 4; ++block) pools[row].blocks.push_back(block);
    }
    awaited.ask(table, layer, query, pools, requests);
    BOOST_REQUIRE_EQUAL(requests.size(), 1U);
  }

  /// The best of row i: its entries here, of falling scores, and its blocks.
  row_block answer() const {
    std::vector<stage::index_findings> found;
    for (const auto& row : stage::asking_rows(table.spans, tiny_model().schedule(),
                                              requests[0].layer, second_shard)) {
      stage::index_findings& one = found.emplace_back();
      for (std::uint32_t i = 0; i < second_shard.count(row.visible); ++i)
        one.entries.push_back({second_shard.entry(i), kernels::to_bf16(-static_cast<float>(i))});
      if (requests[0].layer != 6) continue;
      for (std::uint32_t i = 0; 4 * i < second_shard.count(row.visible); ++i)
        one.blocks.push_back({second_shard.block(i), kernels::to_bf16(1)});
    }
    return stage::make_choice_block(of_tiny(), requests[0], found);
  }

  kernels::arena scratch;
  flow::step_table table;
  std::vector<kernels::candidate_pool> pools;
  std::vector<row_block> requests;
  stage::awaited_choices awaited;
};

/// `block` with its own bytes, changed.
template <class T>
row_block with_value(const row_block& block, std::size_t byte, T value) {
  kernels::buffer memory(block.payload->bytes());
  std::memcpy(memory.data(), block.payload->data(), memory.bytes());
  std::memcpy(memory.data() + byte, &value, sizeof value);
  row_block out = block;
  out.payload = flow::freeze(std::move(memory));
  return out;
}

template <class Change>
row_block changed_block(const row_block& good, const Change& change) {
  row_block bad = good;
  change(bad);
  return bad;
}

void check_query_refused(const row_block& block, const std::string& text) {
  const auto read = stage::questions_of(block, of_tiny(), second_shard);
  BOOST_REQUIRE(!read);
  BOOST_TEST((read.error().code == errc::malformed));
  BOOST_TEST(read.error().message.find(text) != std::string::npos, read.error().message);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(index_blocks)

BOOST_AUTO_TEST_CASE(queries_are_of_the_rows_that_see_entries_of_the_shard) {
  const asked_shard plain(6);
  const row_block& request = plain.requests[0];
  BOOST_TEST((request.kind == row_kind::index_query));
  BOOST_TEST(request.layer == 6U);
  BOOST_TEST(request.reader == 3U);
  BOOST_TEST(request.slice == 1U);
  const auto read = stage::questions_of(request, of_tiny(), second_shard);
  BOOST_REQUIRE(read);
  BOOST_REQUIRE_EQUAL(read->rows.size(), asking);
  BOOST_TEST(read->rows[0].row == 4U);
  BOOST_TEST(read->rows[0].visible == 5U);
  const std::size_t heads = tiny_model().config().index_heads;
  BOOST_TEST(kernels::to_float(read->weights.row(0)[0]) == static_cast<float>(4 * heads));
  BOOST_TEST(read->blocks.empty());

  const asked_shard restricted(8);
  BOOST_TEST((restricted.requests[0].kind == row_kind::pool_query));
  const auto pools = stage::questions_of(restricted.requests[0], of_tiny(), second_shard);
  BOOST_REQUIRE(pools);
  BOOST_TEST(pools->blocks[0] == (std::vector<std::uint32_t>{1}), boost::test_tools::per_element());
  BOOST_TEST(pools->blocks[15] == (std::vector<std::uint32_t>{1, 3}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(queries_that_are_not_the_shards_are_refused) {
  const row_block good = asked_shard(6).requests[0];
  const auto changed = [&](const auto& change) { return changed_block(good, change); };
  const std::string foreign = "this shard does not answer it";
  check_query_refused(changed([](row_block& b) { b.kind = row_kind::pool_query; }), foreign);
  check_query_refused(changed([](row_block& b) { b.kind = row_kind::index_choice; }), foreign);
  check_query_refused(changed([](row_block& b) { b.layer = 7; }), foreign);  // reuses
  check_query_refused(changed([](row_block& b) { b.layer = 4; }), foreign);  // another owner
  check_query_refused(changed([](row_block& b) { b.layer = 99; }), foreign);
  check_query_refused(changed([](row_block& b) { b.slice = 0; }), foreign);
  const std::string rows = "not the rows of its spans that see entries here";
  check_query_refused(changed([](row_block& b) { --b.rows_count; }), rows);
  check_query_refused(changed([](row_block& b) { ++b.row_bytes; }), rows);
  check_query_refused(changed([](row_block& b) { b.payload = nullptr; }), rows);
  check_query_refused(changed([](row_block& b) { b.spans[0].first_position = 1; }), rows);
  const std::string values = "row 0 has weights or blocks that cannot be";
  check_query_refused(
      with_value(good, 0, kernels::to_bf16(std::numeric_limits<float>::quiet_NaN())), values);
  const row_block pool = asked_shard(8).requests[0];  // row 0: {1}
  for (const std::int32_t block : {0, 2, 3, -2, std::numeric_limits<std::int32_t>::max()})
    check_query_refused(with_value(pool, 0, block), values);
  check_query_refused(with_value(pool, 4, std::int32_t{1}), values);  // twice
  BOOST_TEST(stage::questions_of(with_value(pool, 0, std::int32_t{-1}), of_tiny(), second_shard)
                 .has_value());
}

BOOST_AUTO_TEST_CASE(answers_that_nobody_asked_for_are_refused) {
  for (const std::uint32_t layer : {6U, 8U}) {
    asked_shard asked(layer);
    const row_block good = asked.answer();
    const auto refused = [&](const row_block& bad) {
      const auto taken = asked.awaited.take(bad);
      return !taken && taken.error().code == errc::malformed &&
             taken.error().message.find("is not what was asked for") != std::string::npos;
    };
    const auto changed = [&](const auto& change) { return changed_block(good, change); };
    BOOST_TEST(refused(changed([](row_block& b) { b.slice = 0; })));
    BOOST_TEST(refused(changed([](row_block& b) { b.kind = row_kind::index_query; })));
    BOOST_TEST(refused(changed([](row_block& b) { ++b.step.value; })));
    BOOST_TEST(refused(changed([](row_block& b) { ++b.layer; })));
    BOOST_TEST(refused(changed([](row_block& b) { ++b.reader; })));
    BOOST_TEST(refused(changed([](row_block& b) { b.spans.clear(); })));
    BOOST_TEST(refused(changed([](row_block& b) { --b.rows_count; })));
    BOOST_TEST(refused(changed([](row_block& b) { ++b.row_bytes; })));
    BOOST_TEST(refused(changed([](row_block& b) { b.payload = nullptr; })));
    // Row 0 sees entry 4 alone.
    for (const std::int32_t entry : {-1, -2, 0, 3, 5, 8, 12})
      BOOST_TEST(refused(with_value(good, 0, entry)), entry);
    BOOST_TEST(refused(with_value(good, 4, std::int32_t{5})));  // one too many
    const std::size_t k = tiny_model().config().index_topk;
    const std::size_t blocks = layer == 6 ? tiny_model().config().candidate_blocks : 0;
    const std::size_t scores = asking * (k + blocks) * 4;
    const bf16 nan = kernels::to_bf16(std::numeric_limits<float>::quiet_NaN());
    BOOST_TEST(refused(with_value(good, scores, nan)));
    if (layer == 6)
      for (const std::int32_t block : {-1, 0, 2, 3})
        BOOST_TEST(refused(with_value(good, asking * k * 4, block)), block);
    BOOST_TEST(asked.awaited.any());
    BOOST_TEST(asked.awaited.take(good).has_value());
    BOOST_TEST(!asked.awaited.any());
    BOOST_TEST(refused(good));  // twice
  }
}

BOOST_AUTO_TEST_CASE(answers_of_a_restricted_source_are_of_its_pool) {
  asked_shard asked(8);
  // The last row may choose of blocks 1 and 3; of a pool without 3, entry 12 is not for it.
  asked.pools.back().blocks = {0, 1};
  const auto taken = asked.awaited.take(asked.answer());
  BOOST_REQUIRE(!taken);
}

BOOST_AUTO_TEST_SUITE_END()
