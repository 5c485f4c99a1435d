// Goal: the bytes counted for credit are the bytes of tensor and packed lists. Method: sums by
// hand.
#include "runtime/flow/messages.hpp"

#include <boost/test/unit_test.hpp>

using namespace cedar;
using namespace cedar::flow;

BOOST_AUTO_TEST_SUITE(messages)

BOOST_AUTO_TEST_CASE(a_step_table_counts_its_lists) {
  step_table table;
  table.spans = {{request_id{1}, 0, 2, 1}, {request_id{2}, 5, 1, 0}};
  table.tokens = {1, 2, 3};
  table.lookback = {9, 8};
  table.taps = {"abc", ""};
  BOOST_TEST(credit_bytes(message(table)) == 2U * 24 + 5U * 4 + (2 + 3) + 2);
  table.sampling.resize(2);
  table.sampling[1].options.bias = {{1, 0.5F}, {2, 0.5F}, {3, 0.5F}};
  BOOST_TEST(credit_bytes(message(table)) == 2U * 24 + 5U * 4 + (2 + 3) + 2 + 2 * 60 + 3 * 8);
  table.sampling.clear();
  table.prefixes.resize(3);
  table.dropped.resize(2);
  table.spans[1].stored = 6;
  BOOST_TEST(credit_bytes(message(table)) == 2U * 24 + 8 + 5U * 4 + (2 + 3) + 2 + 3 * 16 + 2 * 8);
}

BOOST_AUTO_TEST_CASE(a_row_block_counts_tensor_and_spans) {
  row_block block;
  block.spans = {{request_id{1}, 0, 2, 1}};
  block.rows_count = 2;
  block.row_bytes = 100;
  block.payload = freeze(kernels::buffer(200));
  BOOST_TEST(credit_bytes(message(block)) == 224U);
  block.payload = nullptr;
  BOOST_TEST(credit_bytes(message(block)) == 24U);
}

BOOST_AUTO_TEST_CASE(the_other_kinds_count_their_lists) {
  proposal suggestion;
  suggestion.tokens.resize(3);
  suggestion.logits = freeze(kernels::buffer(64));
  BOOST_TEST(credit_bytes(message(suggestion)) == 64U + 3 * 20);
  verdict decision;
  decision.commitments.resize(2);
  BOOST_TEST(credit_bytes(message(decision)) == 26U);
  decision.commitments[1].kept = prefix_id{1};
  BOOST_TEST(credit_bytes(message(decision)) == 38U);
  draft_orders wanted;
  wanted.orders.resize(2);
  BOOST_TEST(credit_bytes(message(wanted)) == 2U * 20);
  draft_answers given;
  given.drafts = {{request_id{1}, 5, {7, 8}, {0.5F, 0.5F}}, {request_id{2}, 5, {7}, {}}, {}};
  BOOST_TEST(credit_bytes(message(given)) == 3U * 14 + 3 * 4 + 2 * 4);
  tap probe;
  probe.name = "L3.x";
  probe.shape = {2, 3};
  probe.payload = freeze(kernels::buffer(24));
  BOOST_TEST(credit_bytes(message(probe)) == 24U + 8 + 2 + 4);
  step_image picture;
  picture.image.image.pixels = freeze(kernels::buffer(48));
  BOOST_TEST(credit_bytes(message(picture)) == 48U);
  BOOST_TEST(credit_bytes(message(credit{epoch_id{1}, 2, 3})) == 0U);
}

BOOST_AUTO_TEST_CASE(a_span_knows_its_decoder_rows_and_entries) {
  const row_span exact{request_id{1}, 5, 4, 3, 0};
  BOOST_TEST(exact.decoder_from() == 0U);
  BOOST_TEST(exact.decoder_count() == 4U);
  BOOST_TEST(exact.entries_count(1) == 4U);
  BOOST_TEST(exact.entries_count(2) == 2U);  // those that end at positions 5 and 7
  const row_span across{request_id{1}, 5, 4, 3, 7};
  BOOST_TEST(across.decoder_from() == 2U);
  BOOST_TEST(across.decoder_count() == 2U);
  row_span replayed{request_id{1}, 4, 4, 4, 900};
  replayed.begin = 4;
  replayed.stored = 6;
  BOOST_TEST(replayed.begins());
  BOOST_TEST(replayed.first_entry(2) == 3U);
  BOOST_TEST(replayed.entries_count(1) == 2U);  // of positions 6 and 7 alone
  BOOST_TEST(replayed.entries_count(2) == 1U);
  replayed.stored = 20;
  BOOST_TEST(replayed.entries_count(1) == 0U);
  replayed.stored = 2;
  BOOST_TEST(replayed.entries_count(1) == 4U);
  const row_span before{request_id{1}, 5, 4, 4, 900};
  BOOST_TEST(before.decoder_count() == 0U);
  BOOST_TEST(before.logits_count() == 0U);
}

BOOST_AUTO_TEST_CASE(every_kind_has_epoch_and_name) {
  verdict decision;
  decision.epoch = epoch_id{7};
  BOOST_TEST((epoch_of(message(decision)) == epoch_id{7}));
  BOOST_TEST((epoch_of(message(credit{epoch_id{4}, 0, 0})) == epoch_id{4}));
  row_block block;
  block.kind = row_kind::engram_rows;
  BOOST_TEST(kind_of(message(block)) == "engram_rows");
  BOOST_TEST(kind_of(message(decision)) == "verdict");
}

BOOST_AUTO_TEST_SUITE_END()
