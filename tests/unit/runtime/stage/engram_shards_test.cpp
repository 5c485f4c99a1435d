// Goal: wherever the rows of Engram's tables are, a stage gets those of whole tables, bit for bit,
// and each of them once; a shard maps its rows and no others; parts that are not the step's are
// refused by name. Method: tiny-12 over random shards against whole tables; a true part, damaged
// in one place at a time.
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>

#include "runtime/stage/engram_blocks.hpp"
#include "runtime/stage/row_layout.hpp"
#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;
using flow::row_block;
using flow::row_kind;
using model::engram_shard;

namespace {

using blocks = std::vector<row_block>;
using shards = std::vector<engram_shard>;

const model::engram_config& engram() {
  return tiny_model().config().engram;
}

template <class T>
T value_of(result<T> made) {
  BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? std::string() : made.error().message));
  return std::move(*made);
}

/// A chunk, a decode row and a draft block, at the beginning of requests and later.
flow::step_table table_of_three() {
  const std::map<request_id, std::vector<token_id>> ids{{request_id{1}, random_tokens(1, 40)},
                                                        {request_id{2}, random_tokens(2, 40)},
                                                        {request_id{3}, random_tokens(3, 40)}};
  return step_of(3, ids, {{request_id{1}, 0, 9}, {request_id{2}, 1, 1}, {request_id{3}, 20, 6}});
}

/// Both tables in up to five parts each, some of them a few rows; numbered in random order.
shards random_shards(std::mt19937& random) {
  shards out;
  for (std::size_t module = 0; module < engram().layers.size(); ++module) {
    const std::uint64_t rows = engram().rows[module];
    std::set<std::uint64_t> cuts{0, rows};
    for (auto i = 1 + random() % 4; i > 0; --i) cuts.insert(1 + random() % (rows - 1));
    for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut)
      out.push_back({0, engram().layers[module], *cut, *std::next(cut)});
  }
  std::ranges::shuffle(out, random);
  for (std::uint32_t i = 0; i < out.size(); ++i) out[i].number = i;
  return out;
}

/// What units with one shard each send, in any order.
blocks parts_of(const flow::step_table& table, const shards& placed, std::mt19937& random) {
  blocks out;
  for (const engram_shard& shard : placed)
    std::ranges::move(value_of(value_of(tiny_model().make_engram(std::span(&shard, 1))).run(table)),
                      std::back_inserter(out));
  std::ranges::shuffle(out, random);
  return out;
}

bool same_payload(const row_block& a, const row_block& b) {
  return std::ranges::equal(flow::bytes_of(a.payload), flow::bytes_of(b.payload));
}

/// `block` with its own bytes, of which `value` is the i32 at `index`.
row_block with_place(const row_block& block, std::size_t index, std::int32_t value) {
  kernels::buffer memory(block.payload->bytes());
  std::memcpy(memory.data(), block.payload->data(), memory.bytes());
  std::memcpy(memory.data() + index * sizeof value, &value, sizeof value);
  row_block out = block;
  out.payload = flow::freeze(std::move(memory));
  return out;
}

std::int32_t place_at(const row_block& block, std::size_t index) {
  std::int32_t value = 0;
  std::memcpy(&value, block.payload->data() + index * sizeof value, sizeof value);
  return value;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shards_of_engram_tables)

BOOST_AUTO_TEST_CASE(give_the_rows_of_whole_tables) {
  const flow::step_table table = table_of_three();
  const blocks whole = value_of(value_of(tiny_model().make_engram()).run(table));
  std::mt19937 random(20261202);
  for (int round = 0; round < 4; ++round) {
    const shards placed = random_shards(random);
    const blocks parts = parts_of(table, placed, random);
    std::size_t rows = 0;
    for (const row_block& part : parts) rows += part.rows_count;
    BOOST_TEST(rows ==
               2 * std::size_t{table.rows_count()} * tiny_model().config().engram_columns());
    for (std::size_t module = 0; module < whole.size(); ++module) {
      const row_block joined = value_of(stage::join_engram_slots(
          table, tiny_model().config(), engram().layers[module], placed, parts));
      BOOST_TEST((joined.kind == row_kind::engram_rows));
      BOOST_TEST(joined.layer == whole[module].layer);
      BOOST_TEST((joined.spans == table.spans));
      BOOST_TEST(joined.rows_count == table.rows_count());
      BOOST_TEST(same_payload(joined, whole[module]), "round " << round);
    }
  }
}

BOOST_AUTO_TEST_CASE(send_a_block_even_if_no_row_is_theirs) {
  flow::step_table table = table_of_three();
  table.spans.resize(1);
  table.spans[0].rows_count = 1;
  table.tokens.resize(1);
  table.lookback.clear();
  const auto addresses =
      value_of(value_of(tiny_model().make_engram()).addresses(table, engram().layers[0]));
  std::uint64_t unused = 0;
  while (std::ranges::count(addresses, unused) > 0) ++unused;
  const engram_shard shard{4, engram().layers[0], unused, unused + 1};
  const blocks parts =
      value_of(value_of(tiny_model().make_engram(std::span(&shard, 1))).run(table));
  BOOST_REQUIRE(parts.size() == 1U);
  BOOST_TEST((parts[0].kind == row_kind::engram_slots));
  BOOST_TEST(parts[0].slice == 4U);
  BOOST_TEST(parts[0].rows_count == 0U);
  BOOST_TEST((parts[0].spans == table.spans));
}

BOOST_AUTO_TEST_CASE(are_put_together_by_a_stage) {
  const flow::step_table table =
      step_of(1, {{request_id{1}, random_tokens(1, 9)}, {request_id{2}, random_tokens(2, 9)}},
              {{request_id{1}, 0, 9}, {request_id{2}, 0, 1}});
  std::mt19937 random(7);
  const shards placed = random_shards(random);
  const auto run = [&](const stage::layer_stage_options& options, blocks rows) {
    const auto stage = value_of(tiny_model().make_layers(cpu_backend(), options));
    auto input = value_of(value_of(tiny_model().make_embedding()).run(table));
    return value_of(stage->begin({table, std::move(input), std::move(rows), {}, {}}, {})).back();
  };
  stage::layer_stage_options options{0, 5, 4, 64};
  const row_block expected =
      run(options, value_of(value_of(tiny_model().make_engram()).run(table)));
  options.engram_shards = placed;
  BOOST_TEST(same_payload(run(options, parts_of(table, placed, random)), expected));
  const auto stage = value_of(tiny_model().make_layers(cpu_backend(), options));
  BOOST_TEST(stage->engram_inputs().size() == placed.size());
}

BOOST_AUTO_TEST_CASE(map_their_rows_and_no_others) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const engram_shard shard{0, engram().layers[1], 100, 164};
  const auto source = value_of(stage::model_source::open(tiny_model().folder()));
  BOOST_TEST(source->make_engram(std::span(&shard, 1)).has_value());
  // 64 codes of 32 bytes, 64 scales; ranges may lie across pages.
  BOOST_TEST(source->checkpoint().mapped_bytes() <= 2 * page + 2 * page);
  const auto all = value_of(stage::model_source::open(tiny_model().folder()));
  BOOST_TEST(all->make_engram().has_value());
  BOOST_TEST(all->checkpoint().mapped_bytes() > 4 * page);
}

BOOST_AUTO_TEST_CASE(that_are_not_those_of_the_step_are_refused) {
  const flow::step_table table = table_of_three();
  const std::uint32_t layer = engram().layers[0];
  const std::uint64_t rows = engram().rows[0];
  const shards placed{{0, layer, 0, rows / 2}, {1, layer, rows / 2, rows}};
  std::mt19937 random(1);
  blocks parts = parts_of(table, placed, random);
  if (parts[0].slice != 0) std::swap(parts[0], parts[1]);
  const auto check = [&](const blocks& changed, const std::string& text, const shards& of) {
    const auto joined = stage::join_engram_slots(table, tiny_model().config(), layer, of, changed);
    BOOST_REQUIRE(!joined);
    BOOST_TEST((joined.error().code == errc::malformed));
    BOOST_TEST(joined.error().message.find(text) != std::string::npos, joined.error().message);
  };
  const std::string second = "step 3: Engram rows for layer 1 from shard 1 are not those";
  check({parts[0]}, second, placed);
  const auto changed = [&](const std::function<void(row_block&)>& change) {
    blocks out = parts;
    change(out[1]);
    return out;
  };
  check(changed([](row_block& b) { b.step = step_id{4}; }), second, placed);
  check(changed([](row_block& b) { b.layer = 4; }), second, placed);
  check(changed([](row_block& b) { b.spans.pop_back(); }), second, placed);
  check(changed([](row_block& b) { b.row_bytes += 1; }), second, placed);
  check(changed([](row_block& b) { b.rows_count += 1; }), second, placed);
  check({parts[0], with_place(parts[1], 0, place_at(parts[0], 0))}, "which is another's", placed);
  check({parts[0], with_place(parts[1], 0, -1)}, "have place -1 of 96", placed);
  check({parts[0], with_place(parts[1], 0, 96)}, "have place 96 of 96", placed);
  check(parts, "of 96 Engram rows for layer 1 came from no shard", {placed[0]});
}

BOOST_AUTO_TEST_SUITE_END()
