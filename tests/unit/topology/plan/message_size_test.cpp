// Goal: the plan's byte formulas are those of real messages, and those of the released model.
// Method: messages built as their producers build them, measured by flow::credit_bytes; the
// released numbers are those of the architecture: 10,240 and 40,960 and 16 and 1 and 6,336 bytes a
// row.
#include "topology/plan/message_size.hpp"

#include <boost/test/unit_test.hpp>

#include "runtime/flow/messages.hpp"
#include "tests/unit/topology/plan/support.hpp"

using namespace cedar;
using namespace cedar::topology;
using test::configuration;

namespace {

/// A step of three requests in mid-answer: 5, 1 and 7 rows, of which 1, 1 and 0 are wanted.
const step_shape shape{3, 13, 2};

std::vector<flow::row_span> spans() {
  return {{request_id{1}, 100, 5, 4}, {request_id{2}, 50, 1, 0}, {request_id{9}, 3, 7, 7}};
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

    flow::step_table table;
    table.spans = spans();
    table.tokens.assign(13, 7);
    table.lookback.assign(std::size_t{3} * (c.engram.max_ngram - 1), 7);
    BOOST_TEST(step_table_size(c).bytes(shape) == flow::credit_bytes(table));

    BOOST_TEST(embedded_size(c).bytes(shape) == block_bytes(13 * (d * 2 + 1)));
    BOOST_TEST(activation_size(c).bytes(shape) == block_bytes(13 * (4 * d * 2 + 4 * 4 + 1)));
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
  BOOST_TEST(activation_size(c).per_row == 40960U + 16U + 1U);
  BOOST_TEST(head_input_size(c).per_wanted == 10240U);
  BOOST_TEST(head_input_size(c).per_row == 0U);
  BOOST_TEST(engram_rows_size(c).per_row == 6336U);
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
}

BOOST_AUTO_TEST_SUITE_END()
