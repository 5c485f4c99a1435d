// Goal: the plan's byte formulas are those of real messages, and those of the released model.
// Method: messages built as their producers build them, measured by flow::credit_bytes; the
// released numbers are those of the architecture: 10,240 and 40,960 and 16 and 1 and 6,336 bytes a
// row.
#include "topology/plan/message_size.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "runtime/flow/messages.hpp"
#include "tests/unit/topology/plan/support.hpp"

using namespace cedar;
using namespace cedar::topology;
using test::configuration;

namespace {

/// Three requests: 5, 1 and 7 rows, of which 1, 1 and 0 are wanted, and 2, 1 and 0 walk the
/// decoder.
std::vector<flow::row_span> spans() {
  return {{request_id{1}, 100, 5, 4, 103}, {request_id{2}, 50, 1, 0}, {request_id{9}, 1, 7, 7, 99}};
}

flow::step_table table_of_three() {
  flow::step_table table;
  table.spans = spans();
  table.tokens.assign(13, 7);
  table.lookback.assign(3 + 3 + 1, 7);
  return table;
}

flow::payload_ref bytes(std::uint64_t count) {
  return flow::freeze(kernels::buffer(static_cast<std::size_t>(count)));
}

std::uint64_t block_bytes(std::uint64_t payload) {
  flow::row_block block;
  block.spans = spans();
  block.payload = bytes(payload);
  return flow::credit_bytes(block);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(message_sizes)

BOOST_AUTO_TEST_CASE(agree_with_the_messages_that_are_charged) {
  for (const std::string name : {"cedar-tiny", "released"}) {
    const model::model_config& c = configuration(name);
    const std::uint64_t d = c.width;

    const step_shape shape = shape_of(table_of_three(), c);
    BOOST_TEST(step_table_size().bytes(shape) == flow::credit_bytes(table_of_three()));

    BOOST_TEST(embedded_size(c).bytes(shape) == block_bytes(13 * (d * 2 + 1)));
    BOOST_TEST(activation_size(c, false).bytes(shape) == block_bytes(13 * (4 * d * 2 + 4 * 4 + 1)));
    BOOST_TEST(activation_size(c, true).bytes(shape) == block_bytes(3 * (4 * d * 2 + 4 * 4 + 1)));
    BOOST_TEST(head_input_size(c).bytes(shape) == block_bytes(2 * d * 2));
    const std::uint64_t columns = std::uint64_t{c.engram.max_ngram - 1} * c.engram.heads;
    BOOST_TEST(engram_rows_size(c).bytes(shape) ==
               block_bytes(13 * columns * (c.engram.head_dim + c.engram.head_dim / 32)));

    flow::proposal proposal;
    proposal.tokens.resize(2);
    BOOST_TEST(proposal_size(c, false).bytes(shape) == flow::credit_bytes(proposal));
    proposal.logits = bytes(2ULL * c.vocabulary * 4);
    BOOST_TEST(proposal_size(c, true).bytes(shape) == flow::credit_bytes(proposal));

    flow::verdict verdict;
    verdict.commitments.resize(3);
    BOOST_TEST(verdict_size().bytes(shape) == flow::credit_bytes(verdict));
  }
}

BOOST_AUTO_TEST_CASE(are_those_of_the_released_model) {
  const model::model_config& c = configuration("released");
  BOOST_TEST(embedded_size(c).per_row == 10240U + 1U);
  BOOST_TEST(activation_size(c, false).per_row == 40960U + 16U + 1U);
  BOOST_TEST(head_input_size(c).per_wanted == 10240U);
  BOOST_TEST(head_input_size(c).per_row == 0U);
  BOOST_TEST(engram_rows_size(c).per_row == 6336U);
  BOOST_TEST(shared_kv_size(c).per_entry == 288U);
  BOOST_TEST(index_keys_size(c).per_entry == 68U);
  BOOST_TEST(selection_size(c, false).per_row == 2048U);
  BOOST_TEST(selection_size(c, true).per_decoder_row == 2048U);
  BOOST_TEST(candidates_size(c, true).per_decoder_row == 8192U);
  BOOST_TEST(gathered_size(c).per_selected == 288U);
  BOOST_TEST(expert_rows_size(c).per_routed_row == 5120U + 160 + 6 * 8);
  BOOST_TEST(engram_slots_size(c).per_table_row == 268U);
  BOOST_TEST(expert_outputs_size(c).per_choice == 10240U);
  BOOST_TEST(query_size(c, false).per_asking_row == 32U * (64 + 4) + 64);
  BOOST_TEST(query_size(c, true).per_asking_row == 32U * (64 + 4) + 64 + 8192);
  BOOST_TEST(choice_size(c, false).per_asking_row == 512U * (4 + 2));
  BOOST_TEST(choice_size(c, true).per_asking_row == (512U + 2048) * (4 + 2));
}

BOOST_AUTO_TEST_CASE(count_what_a_step_completes_and_chooses) {
  const flow::step_table table = table_of_three();
  // Positions 100-104, 50, 1-7: of ratio 2 the entries that end at 101, 103; none; 1, 3, 5, 7.
  BOOST_TEST(entries_of(table, 2) == 2U + 0 + 4);
  BOOST_TEST(entries_of(table, 1) == 13U);
  const model::model_config& c = configuration("cedar-tiny");
  const model::schedule schedule(c);
  // Layer 2 (ratio 2, top 32): rows see 50, 51, 51, 52, 52; 25; 1, 1, 2, 2, 3, 3, 4 entries.
  BOOST_TEST(selected_of(table, c, schedule[2], false) == 5U * 32 + 25 + 16);
  // Layer 6 (ratio 1), rows of the decoder only: positions 103, 104, 50.
  BOOST_TEST(selected_of(table, c, schedule[6], true) == 3U * 32);
}

BOOST_AUTO_TEST_CASE(bound_the_entries_of_a_step) {
  for (std::uint32_t ratio = 1; ratio <= 4; ++ratio)
    for (std::uint32_t rows = 1; rows <= 9; ++rows) {
      std::uint64_t most = 0;
      for (std::uint32_t first = 0; first < ratio; ++first) {
        flow::step_table table;
        table.spans = {{request_id{1}, first, rows, rows}};
        most = std::max(most, entries_of(table, ratio));
      }
      BOOST_TEST(entries_max(rows, 1, ratio) == most);
    }
  // Two requests of one row each, both of which complete an entry.
  BOOST_TEST(entries_max(2, 2, 4) == 2U);
  BOOST_TEST(entries_max(10, 2, 4) == 4U);
}

BOOST_AUTO_TEST_CASE(bound_the_largest_tap_and_the_longest_list_of_names) {
  const model::model_config& c = configuration("cedar-tiny");
  flow::tap tap;
  tap.name = std::string(tap_name_bytes_max, 'n');
  tap.shape = {7, c.heads, c.head_dim, 1};
  for (const std::uint64_t row_elements :
       {std::uint64_t{500}, std::uint64_t{c.heads} * c.head_dim,
        (std::uint64_t{c.streams} + 1) * c.width, std::uint64_t{c.index_heads} * c.index_head_dim,
        std::uint64_t{c.routed_experts}}) {
    tap.payload = bytes(7 * row_elements * 4);
    BOOST_TEST(flow::credit_bytes(tap) <= tap_bytes_max(c, 7, 500));
  }
  tap.payload = bytes(7 * 5000 * 4);
  BOOST_TEST(flow::credit_bytes(tap) == tap_bytes_max(c, 7, 5000));

  flow::step_table table;
  table.taps.assign(taps_per_step_max, std::string(tap_name_bytes_max, 'n'));
  BOOST_TEST(flow::credit_bytes(table) == tap_names_bytes_max());
  table.taps.clear();
  table.sampling.resize(2);
  for (flow::request_sampling& entry : table.sampling)
    entry.options.bias.resize(flow::token_biases_max);
  BOOST_TEST(flow::credit_bytes(table) == sampling_bytes_max(2));
  flow::step_table reuse;
  reuse.prefixes.resize(2);
  reuse.dropped.resize(flow::prefixes_dropped_max);
  reuse.spans.resize(2);
  for (flow::row_span& span : reuse.spans) span.stored = 2;
  BOOST_TEST(flow::credit_bytes(reuse) == prefix_bytes_max(2) + step_table_size().bytes({2}));
  BOOST_TEST(replay_bytes_of(reuse) <= replay_bytes_max(2));
  flow::verdict keeping;
  keeping.commitments.resize(2);
  for (flow::commitment& one : keeping.commitments) one.kept = prefix_id{1};
  BOOST_TEST(flow::credit_bytes(keeping) == verdict_size().bytes({2}) + replay_bytes_max(2));
  table.prefixes.resize(1);
  table.dropped.resize(3);
  table.taps = {"L3.attn.out"};
  table.sampling[0].options.bias.clear();
  BOOST_TEST(flow::credit_bytes(table) == extra_bytes_of(table));
}

BOOST_AUTO_TEST_SUITE_END()
