// Goal: every kind of message survives the wire, tensor bytes in place. Method: encode, copy as a
// network does, decode, compare field by field; some bytes are pinned by hand.
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>

#include "kernels/base/check.hpp"
#include "runtime/wire/checksum.hpp"
#include "runtime/wire/decode.hpp"
#include "runtime/wire/encode.hpp"
#include "tests/unit/runtime/wire/samples.hpp"

using namespace cedar;
using namespace cedar::wire;
using namespace cedar::wire::test;

namespace {

const flow::envelope head{edge_id{6}, 0xfedcba9876543210, 0x0123456789abcdef};

template <class Message>
Message round_trip(const Message& message) {
  flow::frame frame = encode(head, message);
  BOOST_TEST(frame.header.size() <= header_bytes_max);
  BOOST_TEST(frame.payload_bytes() == flow::credit_bytes(flow::message(message)));
  auto back = decode(cross(frame));
  BOOST_REQUIRE_MESSAGE(back.has_value(), (back ? std::string() : back.error().message));
  BOOST_TEST((back->envelope.edge == head.edge));
  BOOST_TEST(back->envelope.sequence == head.sequence);
  BOOST_TEST(back->envelope.fingerprint == head.fingerprint);
  BOOST_REQUIRE(std::holds_alternative<Message>(back->message));
  BOOST_TEST(flow::credit_bytes(back->message) == flow::credit_bytes(flow::message(message)));
  auto out = std::get<Message>(std::move(back->message));
  BOOST_TEST((out.epoch == message.epoch));
  if constexpr (requires { out.step; }) BOOST_TEST((out.step == message.step));
  return out;
}

void check_same_bytes(const flow::payload_ref& left, const flow::payload_ref& right) {
  const auto a = flow::bytes_of(left), b = flow::bytes_of(right);
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  BOOST_TEST((a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(round_trip_of)

BOOST_AUTO_TEST_CASE(a_step_table) {
  const flow::step_table sent = sample_step_table();
  const flow::step_table got = round_trip(sent);
  BOOST_TEST((got.spans == sent.spans));
  BOOST_TEST(got.tokens == sent.tokens, boost::test_tools::per_element());
  BOOST_TEST(got.lookback == sent.lookback, boost::test_tools::per_element());
  BOOST_TEST(got.want_logits);
  BOOST_TEST(got.taps == sent.taps, boost::test_tools::per_element());
  BOOST_TEST((got.sampling == sent.sampling));
  BOOST_TEST((got.prefixes == sent.prefixes));
  BOOST_TEST((got.dropped == sent.dropped));
}

BOOST_AUTO_TEST_CASE(an_empty_step_table) {
  const flow::step_table got = round_trip(flow::step_table{});
  BOOST_TEST(got.spans.empty());
  BOOST_TEST(!got.want_logits);
}

BOOST_AUTO_TEST_CASE(row_blocks_of_every_kind) {
  for (const auto kind :
       {flow::row_kind::embedded, flow::row_kind::activation, flow::row_kind::engram_rows,
        flow::row_kind::head_input, flow::row_kind::shared_kv, flow::row_kind::index_keys,
        flow::row_kind::selection, flow::row_kind::candidates, flow::row_kind::gather_request,
        flow::row_kind::gathered, flow::row_kind::draft_taps, flow::row_kind::image_rows,
        flow::row_kind::expert_rows, flow::row_kind::expert_outputs, flow::row_kind::index_query,
        flow::row_kind::pool_query, flow::row_kind::index_choice, flow::row_kind::pool_choice,
        flow::row_kind::engram_slots}) {
    const flow::row_block sent = sample_row_block(kind);
    const flow::row_block got = round_trip(sent);
    BOOST_TEST((got.kind == kind));
    BOOST_TEST(got.layer == sent.layer);
    BOOST_TEST(got.reader == sent.reader);
    BOOST_TEST(got.slice == sent.slice);
    BOOST_TEST((got.spans == sent.spans));
    BOOST_TEST(got.rows_count == sent.rows_count);
    BOOST_TEST(got.row_bytes == sent.row_bytes);
    check_same_bytes(got.payload, sent.payload);
  }
}

BOOST_AUTO_TEST_CASE(a_proposal_with_and_without_logits) {
  for (const bool with_logits : {false, true}) {
    const flow::proposal sent = sample_proposal(with_logits);
    const flow::proposal got = round_trip(sent);
    BOOST_TEST((got.tokens == sent.tokens));
    check_same_bytes(got.logits, sent.logits);
  }
}

BOOST_AUTO_TEST_CASE(a_verdict) {
  const flow::verdict sent = sample_verdict();
  BOOST_TEST((round_trip(sent).commitments == sent.commitments));
}

BOOST_AUTO_TEST_CASE(orders_of_drafts_and_their_answers) {
  const flow::draft_orders orders = sample_draft_orders();
  BOOST_TEST((round_trip(orders).orders == orders.orders));
  const flow::draft_answers answers = sample_draft_answers();
  BOOST_TEST((round_trip(answers).drafts == answers.drafts));
}

BOOST_AUTO_TEST_CASE(an_image_but_for_its_digest) {
  flow::step_image sent = sample_image();
  sent.image.image.digest.fill(std::byte{7});
  const flow::step_image got = round_trip(sent);
  BOOST_TEST((got.image.request == sent.image.request));
  const flow::prompt_image& a = got.image.image;
  const flow::prompt_image& b = sent.image.image;
  BOOST_TEST(a.position == b.position);
  BOOST_TEST(a.rows_count == b.rows_count);
  BOOST_TEST(a.patch_rows == b.patch_rows);
  BOOST_TEST(a.patch_columns == b.patch_columns);
  check_same_bytes(a.pixels, b.pixels);
  BOOST_TEST((a.digest == flow::image_digest{}));
}

BOOST_AUTO_TEST_CASE(a_tap) {
  const flow::tap sent = sample_tap();
  const flow::tap got = round_trip(sent);
  BOOST_TEST(!got.last);
  BOOST_TEST(got.name == sent.name);
  BOOST_TEST((got.type == sent.type));
  BOOST_TEST(got.shape == sent.shape, boost::test_tools::per_element());
  check_same_bytes(got.payload, sent.payload);
}

BOOST_AUTO_TEST_CASE(the_end_of_taps) {
  const flow::tap got = round_trip(sample_end_of_taps());
  BOOST_TEST(got.last);
  BOOST_TEST(got.name.empty());
  BOOST_TEST(flow::bytes_of(got.payload).empty());
}

BOOST_AUTO_TEST_CASE(a_credit) {
  const flow::credit got = round_trip(flow::credit{epoch_id{5}, 3, std::uint64_t{1} << 40});
  BOOST_TEST(got.messages == 3U);
  BOOST_TEST(got.bytes == std::uint64_t{1} << 40);
}

BOOST_AUTO_TEST_CASE(tensor_bytes_are_not_copied_and_stay_aligned) {
  const flow::row_block sent = sample_row_block(flow::row_kind::activation);
  const flow::frame frame = encode(head, sent);
  BOOST_TEST(frame.tensor.get() == sent.payload.get());
  flow::received_frame arrived = cross(frame);
  const std::byte* at = arrived.payload.data();
  const auto got = decode(std::move(arrived));
  BOOST_REQUIRE(got.has_value());
  const auto& block = std::get<flow::row_block>(got->message);
  BOOST_TEST(block.payload->data() == at);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(at) % kernels::buffer_alignment == 0U);
}

BOOST_AUTO_TEST_CASE(packed_lists_lie_as_documented) {
  const flow::verdict sent{
      step_id{1}, epoch_id{0}, {{request_id{0x0807060504030201}, 0x0c0b0a09, true}}};
  const flow::frame frame = encode(head, sent);
  const std::array<unsigned, 13> expected{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1};
  BOOST_REQUIRE_EQUAL(frame.lists.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    BOOST_TEST(std::to_integer<unsigned>(frame.lists[i]) == expected[i]);
  }
}

BOOST_AUTO_TEST_CASE(the_checksum_is_xxh3_of_the_parts_together) {
  // Reference values of the published XXH3-64 (seed 0) for "" and for the bytes 0 1 2 ... 9.
  BOOST_TEST(checksum_of({}) == 0x2d06800538d394c2U);
  std::array<std::byte, 10> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const std::span<const std::byte> all(bytes);
  BOOST_TEST(checksum_of({all}) == checksum_of({all.first(3), {}, all.subspan(3)}));
  BOOST_TEST(checksum_of({all}) != checksum_of({all.first(9)}));
}

BOOST_AUTO_TEST_CASE(a_message_that_contradicts_itself_is_a_defect) {
  flow::step_table table = sample_step_table();
  table.tokens.pop_back();
  BOOST_CHECK_THROW(encode(head, table), defect);
  flow::row_block block = sample_row_block(flow::row_kind::activation);
  block.row_bytes = 16;
  BOOST_CHECK_THROW(encode(head, block), defect);
  block = sample_row_block(flow::row_kind::activation);
  block.kind = flow::row_kind::head_input;
  BOOST_CHECK_THROW(encode(head, block), defect);
  flow::tap probe = sample_tap();
  probe.shape.push_back(2);
  BOOST_CHECK_THROW(encode(head, probe), defect);
  probe = sample_tap();
  probe.name.assign(257, 'x');
  BOOST_CHECK_THROW(encode(head, probe), defect);
  flow::proposal value = sample_proposal(true);
  value.tokens.push_back({request_id{3}, 0, 0, 0});
  value.tokens.push_back({request_id{3}, 0, 0, 0});
  value.tokens.push_back({request_id{3}, 0, 0, 0});  // 48 bytes are no rows of five tokens
  BOOST_CHECK_THROW(encode(head, value), defect);
  flow::draft_answers drafts = sample_draft_answers();
  drafts.drafts[0].confidences.pop_back();
  BOOST_CHECK_THROW(encode(head, drafts), defect);
  drafts = sample_draft_answers();
  drafts.drafts[0].confidences[1] = 1.5F;
  BOOST_CHECK_THROW(encode(head, drafts), defect);
  drafts = sample_draft_answers();
  drafts.drafts[1].tokens.assign(flow::draft_tokens_limit + 1, 4);
  BOOST_CHECK_THROW(encode(head, drafts), defect);
  flow::step_image image = sample_image();
  image.image.image.patch_rows = 5;  // 72 bytes are no pixels of 15 patches
  BOOST_CHECK_THROW(encode(head, image), defect);
  image = sample_image();
  image.image.image.pixels = nullptr;
  BOOST_CHECK_THROW(encode(head, image), defect);
}

BOOST_AUTO_TEST_SUITE_END()
