// Goal: no wrong frame becomes a message. Method: frames with a valid checksum and one lie each,
// built from the schemas; and every single flipped bit of a good frame.
#include <capnp/message.h>

#include <boost/test/unit_test.hpp>
#include <functional>
#include <limits>

#include "runtime/wire/checksum.hpp"
#include "runtime/wire/decode.hpp"
#include "runtime/wire/encode.hpp"
#include "schemas/frame.capnp.h"
#include "tests/unit/runtime/wire/samples.hpp"

using namespace cedar;
using namespace cedar::wire;
using namespace cedar::wire::test;

namespace {

using fill = std::function<void(schemas::Header::Builder)>;

/// A frame whose header is filled by the caller and whose checksum is right.
flow::received_frame forge(const fill& what, const std::vector<std::byte>& payload) {
  capnp::MallocMessageBuilder builder;
  auto header = builder.initRoot<schemas::Header>();
  header.setVersion(protocol_version);
  what(header);
  const auto segment = builder.getSegmentsForOutput()[0].asBytes();
  flow::received_frame frame{{}, kernels::buffer(payload.size())};
  frame.header.resize(segment.size() + 8);
  std::memcpy(frame.header.data(), segment.begin(), segment.size());
  if (!payload.empty()) std::memcpy(frame.payload.data(), payload.data(), payload.size());
  const std::uint64_t checksum =
      checksum_of({std::span(frame.header).first(segment.size()), frame.payload.span()});
  std::memcpy(frame.header.data() + segment.size(), &checksum, sizeof checksum);
  return frame;
}

void check_refused(const fill& what, const std::vector<std::byte>& payload, errc code,
                   const std::string& field) {
  const auto got = decode(forge(what, payload));
  BOOST_REQUIRE_MESSAGE(!got.has_value(), "accepted: " + field);
  BOOST_TEST((got.error().code == code));
  BOOST_TEST(got.error().message.find(field) != std::string::npos,
             "'" + got.error().message + "' does not name " + field);
}

void check_malformed(const fill& what, const std::vector<std::byte>& payload,
                     const std::string& field) {
  check_refused(what, payload, errc::malformed, field);
}

/// A packed span of `rows` rows at `position`, the rows from `logits_from` wanted.
std::vector<std::byte> packed_span(std::uint32_t position, std::uint32_t rows,
                                   std::uint32_t logits_from, std::uint32_t decoder_begin = 0,
                                   std::uint32_t begin = 0, std::uint32_t stored = 0) {
  std::vector<std::byte> out(stored > 0 ? 32 : 24);
  std::memcpy(out.data() + 20, &decoder_begin, 4);
  if (stored > 0) {
    rows |= std::uint32_t{1} << 31;
    std::memcpy(out.data() + 24, &begin, 4);
    std::memcpy(out.data() + 28, &stored, 4);
  }
  std::memcpy(out.data() + 8, &position, 4);
  std::memcpy(out.data() + 12, &rows, 4);
  std::memcpy(out.data() + 16, &logits_from, 4);
  return out;
}

std::vector<std::byte> zeros(std::size_t bytes) {
  return std::vector<std::byte>(bytes);
}

std::vector<std::byte> operator+(std::vector<std::byte> left, const std::vector<std::byte>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

fill step_table(std::uint32_t spans, std::uint32_t tokens, std::uint32_t lookback,
                std::uint32_t taps, std::uint32_t sampling = 0) {
  return [=](schemas::Header::Builder header) {
    auto body = header.initBody().initStepTable();
    body.setSpans(spans);
    body.setTokens(tokens);
    body.setLookback(lookback);
    body.setTaps(taps);
    body.setSampling(sampling);
  };
}

fill row_block(unsigned kind, std::uint32_t spans, std::uint32_t rows, std::uint32_t row_bytes) {
  return [=](schemas::Header::Builder header) {
    auto body = header.initBody().initRowBlock();
    body.setKind(static_cast<schemas::RowKind>(kind));
    body.setSpans(spans);
    body.setRows(rows);
    body.setRowBytes(row_bytes);
  };
}

fill proposal(std::uint32_t tokens, std::uint64_t logits_bytes) {
  return [=](schemas::Header::Builder header) {
    auto body = header.initBody().initProposal();
    body.setTokens(tokens);
    body.setLogitsBytes(logits_bytes);
  };
}

fill tap(unsigned type, std::uint8_t extents, std::uint64_t tensor_bytes, bool last = false) {
  return [=](schemas::Header::Builder header) {
    auto body = header.initBody().initTap();
    body.setType(static_cast<schemas::ElementType>(type));
    body.setExtents(extents);
    body.setTensorBytes(tensor_bytes);
    body.setLast(last);
  };
}

fill draft_orders(std::uint32_t orders) {
  return [=](schemas::Header::Builder header) {
    header.initBody().initDraftOrders().setOrders(orders);
  };
}

fill draft_answers(std::uint32_t drafts) {
  return [=](schemas::Header::Builder header) {
    header.initBody().initDraftAnswers().setDrafts(drafts);
  };
}

fill image(std::uint32_t position, std::uint32_t rows, std::uint32_t patch_rows,
           std::uint32_t patch_columns, std::uint64_t bytes) {
  return [=](schemas::Header::Builder header) {
    auto out = header.initBody().initImage();
    out.setPosition(position);
    out.setRows(rows);
    out.setPatchRows(patch_rows);
    out.setPatchColumns(patch_columns);
    out.setPixelBytes(bytes);
  };
}

/// A packed draft of so many tokens and confidences, without them.
std::vector<std::byte> packed_draft(unsigned tokens, unsigned confidences) {
  std::vector<std::byte> out(14);
  out[12] = static_cast<std::byte>(tokens);
  out[13] = static_cast<std::byte>(confidences);
  return out;
}

std::vector<std::byte> packed_float(float value) {
  std::vector<std::byte> out(4);
  std::memcpy(out.data(), &value, 4);
  return out;
}

constexpr std::uint32_t u32_max = std::numeric_limits<std::uint32_t>::max();

}  // namespace

BOOST_AUTO_TEST_SUITE(malformed)

BOOST_AUTO_TEST_CASE(the_forger_makes_good_frames_too) {
  BOOST_TEST(decode(forge(step_table(1, 2, 0, 0), packed_span(3, 2, 1) + zeros(8))).has_value());
  BOOST_TEST(decode(forge(row_block(1, 1, 2, 5), zeros(10) + packed_span(0, 2, 2))).has_value());
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_is_found) {
  const flow::frame frame =
      encode({edge_id{1}, 2, 3}, sample_row_block(flow::row_kind::activation));
  const std::size_t header_bits = frame.header.size() * 8;
  const std::size_t bits = header_bits + frame.payload_bytes() * 8;
  for (std::size_t bit = 0; bit < bits; ++bit) {
    flow::received_frame arrived = cross(frame);
    std::byte* at = bit < header_bits ? arrived.header.data() + bit / 8
                                      : arrived.payload.data() + (bit - header_bits) / 8;
    *at ^= std::byte{1} << (bit % 8);
    const auto got = decode(std::move(arrived));
    BOOST_REQUIRE_MESSAGE(!got.has_value(), "bit " << bit);
    BOOST_REQUIRE(got.error().message.find("checksum") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(headers_of_wrong_length_are_refused) {
  const flow::frame frame = encode({edge_id{1}, 2, 3}, flow::verdict{});
  for (std::size_t bytes = 0; bytes < frame.header.size(); ++bytes) {
    flow::received_frame arrived = cross(frame);
    arrived.header.resize(bytes);
    BOOST_TEST(!decode(std::move(arrived)).has_value());
  }
  flow::received_frame arrived = cross(frame);
  arrived.header.resize(header_bytes_max + 8);
  BOOST_TEST(!decode(std::move(arrived)).has_value());
}

BOOST_AUTO_TEST_CASE(other_versions_are_refused_by_name) {
  check_refused([](schemas::Header::Builder header) { header.setVersion(protocol_version + 1); },
                {}, errc::refused,
                "protocol version " + std::to_string(protocol_version + 1) +
                    ", this program speaks " + std::to_string(protocol_version));
  check_refused([](schemas::Header::Builder header) { header.setVersion(0); }, {}, errc::refused,
                "protocol version 0");
}

BOOST_AUTO_TEST_CASE(pointers_that_lead_nowhere_are_caught) {
  // A root pointer that claims a struct far beyond the segment.
  flow::received_frame frame{std::vector<std::byte>(24), {}};
  const std::uint64_t root = (std::uint64_t{0x7fff} << 32) | (0x1000U << 2);
  std::memcpy(frame.header.data(), &root, sizeof root);
  const std::uint64_t checksum = checksum_of({std::span(frame.header).first(16)});
  std::memcpy(frame.header.data() + 16, &checksum, sizeof checksum);
  const auto got = decode(std::move(frame));
  BOOST_REQUIRE(!got.has_value());
  BOOST_TEST((got.error().code == errc::malformed));
  BOOST_TEST(got.error().message.find("frame: header:") == 0U);
}

BOOST_AUTO_TEST_CASE(step_tables) {
  const auto span = packed_span(0, 2, 1);
  check_malformed(step_table(1, 2, 0, 0), zeros(23), "stepTable.spans");
  check_malformed(step_table(u32_max, 2, 0, 0), span + zeros(8), "stepTable.spans");
  check_malformed(step_table(1, 3, 0, 0), span + zeros(12), "stepTable.tokens");
  check_malformed(step_table(1, 2, 0, 0), span + zeros(7), "stepTable.tokens");
  check_malformed(step_table(1, 2, 1, 0), span + zeros(8), "stepTable.lookback");
  check_malformed(step_table(1, 2, 0, 1), span + zeros(8), "stepTable.taps");
  check_malformed(step_table(1, 2, 0, u32_max), span + zeros(8 + 2), "stepTable.taps");
  check_malformed(step_table(1, 2, 0, 1), span + zeros(8) + std::vector{std::byte{9}, std::byte{0}},
                  "stepTable.taps");
  check_malformed(step_table(1, 2, 0, 1),
                  span + zeros(8) + std::vector{std::byte{1}, std::byte{1}} + zeros(257),
                  "a name of 257 bytes");
  check_malformed(step_table(1, 2, 0, 0), span + zeros(9), "stepTable: 1 bytes");
  auto taps = packed_span(0, 2, 1);
  taps[15] |= std::byte{3 << 5};
  check_malformed(step_table(1, 2, 0, 0), taps + zeros(8), "an unknown use of taps");
  check_malformed(step_table(1, 2, 0, 0), packed_span(0, 2, 3) + zeros(8), "logits begin at row 3");
  check_malformed(step_table(1, 2, 0, 0), packed_span(u32_max - 1, 2, 0) + zeros(8),
                  "positions overflow");
  check_malformed(step_table(1, 2, 0, 0), packed_span(0, 2, 1, 2) + zeros(8),
                  "wanted rows begin before the decoder's rows");
  BOOST_TEST(
      decode(forge(step_table(1, 2, 0, 0), packed_span(9, 2, 1, 0, 9, 10) + zeros(8))).has_value());
  check_malformed(step_table(1, 2, 0, 0), packed_span(8, 2, 1, 0, 9, 10) + zeros(8),
                  "the request begins at 9, after its span");
  check_malformed(step_table(1, 2, 0, 0), packed_span(9, 2, 1, 0, 9, 9) + zeros(8),
                  "outside its prefix");
  auto nothing = packed_span(9, 2, 1, 0, 0, 1);
  nothing[28] = {};
  check_malformed(step_table(1, 2, 0, 0), nothing + zeros(8), "a prefix of no position");
  auto cut = packed_span(9, 2, 1, 0, 0, 10);
  cut.resize(31);
  check_malformed(step_table(1, 2, 0, 0), cut, "stepTable.spans");
}

BOOST_AUTO_TEST_CASE(prefixes_of_step_tables) {
  const auto table = [](std::uint32_t prefixes, std::uint32_t dropped) {
    return [=](schemas::Header::Builder header) {
      step_table(1, 2, 0, 0)(header);
      auto body = header.getBody().getStepTable();
      body.setPrefixes(prefixes);
      body.setDropped(dropped);
    };
  };
  const auto begin = packed_span(0, 2, 1) + zeros(8);
  BOOST_TEST(decode(forge(table(1, 2), begin + zeros(16 + 16))).has_value());
  check_malformed(table(1, 0), begin + zeros(15), "stepTable.prefixes");
  check_malformed(table(u32_max, 0), begin + zeros(16), "stepTable.prefixes");
  check_malformed(table(0, 2), begin + zeros(15), "stepTable.dropped");
  check_malformed(table(0, 1025), begin + zeros(8 * 1025), "1025 prefixes");
}

BOOST_AUTO_TEST_CASE(sampling_of_step_tables) {
  const auto begin = packed_span(0, 2, 1) + zeros(8);
  const auto biases = [](std::uint32_t count) {
    std::vector<std::byte> out(60);
    std::memcpy(out.data() + 56, &count, 4);
    return out;
  };
  BOOST_TEST(decode(forge(step_table(1, 2, 0, 0, 1), begin + biases(1) + zeros(8))).has_value());
  check_malformed(step_table(1, 2, 0, 0, 1), begin + zeros(59), "stepTable.sampling");
  check_malformed(step_table(1, 2, 0, 0, u32_max), begin + biases(0), "stepTable.sampling");
  check_malformed(step_table(1, 2, 0, 0, 2), begin + biases(7) + zeros(56), "stepTable.sampling");
  check_malformed(step_table(1, 2, 0, 0, 1), begin + biases(1) + zeros(7), "stepTable.sampling");
  check_malformed(step_table(1, 2, 0, 0, 1), begin + biases(1025) + zeros(8 * 1025),
                  "1025 token biases");
}

BOOST_AUTO_TEST_CASE(row_blocks) {
  const auto span = packed_span(0, 2, 1);
  check_malformed(row_block(19, 1, 2, 5), zeros(10) + span, "rowBlock.kind");
  check_malformed(row_block(17, 1, 3, 5), zeros(15) + span, "rowBlock.rows");  // of two
  check_malformed(row_block(12, 1, 3, 5), zeros(15) + span, "rowBlock.rows");  // of two
  BOOST_TEST(decode(forge(row_block(13, 1, 3, 5), zeros(15) + span)).has_value());
  check_malformed(row_block(1, 1, 2, 6), zeros(10), "rowBlock.rows");
  check_malformed(row_block(1, 1, u32_max, u32_max), zeros(10) + span, "rowBlock.rows");
  check_malformed(row_block(1, 1, 2, 5), zeros(10) + zeros(23), "rowBlock.spans");
  check_malformed(row_block(0, 1, 1, 5), zeros(5) + span, "1 are not those of the spans");
  check_malformed(row_block(1, 1, 3, 5), zeros(15) + span, "3 are not those of the spans");
  check_malformed(row_block(3, 1, 2, 5), zeros(10) + span, "2 are not those of the spans");
  check_malformed(row_block(1, 1, 2, 5), zeros(10) + span + zeros(1), "rowBlock: 1 bytes");
  check_malformed(row_block(1, 1, 2, 4), zeros(10) + span, "rowBlock");
}

BOOST_AUTO_TEST_CASE(proposals_and_verdicts) {
  check_malformed(proposal(1, 5), zeros(25), "proposal.logitsBytes");
  check_malformed(proposal(0, 4), zeros(4), "proposal.logitsBytes");
  check_malformed(proposal(1, std::numeric_limits<std::uint64_t>::max() - 3), zeros(20),
                  "proposal.logitsBytes");
  check_malformed(proposal(2, 8), zeros(8 + 39), "proposal.tokens");
  check_malformed(proposal(1, 0), zeros(21), "proposal: 1 bytes");
  const fill two = [](schemas::Header::Builder header) {
    header.initBody().initVerdict().setCommitments(2);
  };
  check_malformed(two, zeros(25), "verdict.commitments");
  check_malformed(two, zeros(27), "verdict: 1 bytes");
  check_malformed(two, zeros(25) + std::vector{std::byte{3}}, "verdict.finished");
  // Kept: without its name, under no name, and more than the committed rows.
  const std::vector<std::byte> keeps{std::byte{2}}, one{std::byte{1}};
  check_malformed(two, zeros(12) + keeps + one + zeros(12), "verdict.commitments");
  check_malformed(two, zeros(25) + keeps + zeros(11), "verdict.kept");
  check_malformed(two, zeros(25) + keeps + zeros(12), "verdict.kept");
  BOOST_TEST(decode(forge(two, zeros(25) + keeps + one + zeros(11))).has_value());
  check_malformed(two, zeros(25) + keeps + one + zeros(7) + one + zeros(3), "verdict.kept");
}

BOOST_AUTO_TEST_CASE(orders_of_drafts_and_their_answers) {
  BOOST_TEST(decode(forge(draft_orders(2), zeros(40))).has_value());
  check_malformed(draft_orders(2), zeros(39), "draftOrders.orders");
  check_malformed(draft_orders(u32_max), zeros(40), "draftOrders.orders");
  check_malformed(draft_orders(2), zeros(41), "draftOrders: 1 bytes");

  const auto one = packed_draft(1, 1) + zeros(4);
  BOOST_TEST(decode(forge(draft_answers(1), one + packed_float(1))).has_value());
  BOOST_TEST(decode(forge(draft_answers(1), packed_draft(2, 0) + zeros(8))).has_value());
  check_malformed(draft_answers(1), zeros(13), "draftAnswers.drafts");
  check_malformed(draft_answers(u32_max), one + packed_float(1), "draftAnswers.drafts");
  // The second one is too short for its fields, though the first left enough for both.
  check_malformed(draft_answers(2), packed_draft(4, 0) + zeros(16) + zeros(13),
                  "draftAnswers.drafts");
  check_malformed(draft_answers(1), packed_draft(2, 1) + zeros(12), "1 of 2 tokens");
  check_malformed(draft_answers(1), packed_draft(255, 0) + zeros(4 * 254), "draftAnswers.tokens");
  check_malformed(draft_answers(1), one + zeros(3), "draftAnswers.confidences");
  for (const float wrong : {-0.5F, 1.5F, std::numeric_limits<float>::quiet_NaN()})
    check_malformed(draft_answers(1), one + packed_float(wrong), "no probability");
  check_malformed(draft_answers(1), one + packed_float(1) + zeros(1), "draftAnswers: 1 bytes");
}

BOOST_AUTO_TEST_CASE(images) {
  BOOST_TEST(decode(forge(image(7, 4, 2, 1, 24), zeros(24))).has_value());
  check_malformed(image(7, 4, 2, 1, 24), zeros(23), "image.pixelBytes");
  check_malformed(image(7, 4, 2, 1, 24), zeros(25), "image: 1 bytes");
  check_malformed(image(7, 4, 2, 1, ~std::uint64_t{0}), zeros(24), "image.pixelBytes");
  for (const fill& wrong :
       {image(7, 0, 2, 1, 24), image(7, 4, 0, 1, 24), image(7, 4, 2, 0, 24),
        image(u32_max, 4, 2, 1, 24), image(7, 4, u32_max, u32_max, 24), image(7, 4, 2, 5, 24)})
    check_malformed(wrong, zeros(24), "image.pixelBytes");
  check_malformed(image(7, 4, 2, 1, 23), zeros(23), "image.pixelBytes");
  check_malformed(image(7, 4, 2, 1, 0), {}, "image.pixelBytes");
}

BOOST_AUTO_TEST_CASE(taps_and_credits) {
  const std::vector<std::byte> shape{std::byte{2}, {}, {}, {}};  // [2] f32 = 8 bytes
  BOOST_TEST(decode(forge(tap(0, 1, 8), zeros(8) + shape + zeros(2))).has_value());
  check_malformed(tap(9, 1, 8), zeros(8) + shape + zeros(2), "tap.type");
  check_malformed(tap(0, 9, 8), zeros(8 + 36 + 2), "tap.extents");
  check_malformed(tap(0, 1, 9), zeros(8), "tap.tensorBytes");
  check_malformed(tap(0, 1, 4), zeros(4) + shape + zeros(2), "tap.tensorBytes");
  check_malformed(tap(0, 1, 8), zeros(8 + 3), "tap.extents");
  check_malformed(tap(0, 1, 8, true), zeros(8) + shape + zeros(2), "tap.last");
  BOOST_TEST(decode(forge(tap(0, 1, 0, true), zeros(4 + 2))).has_value());
  check_malformed(tap(0, 1, 0, true),
                  zeros(4) + std::vector{std::byte{1}, std::byte{0}, std::byte{'a'}}, "tap.last");
  check_malformed(tap(0, 1, 8), zeros(8) + shape + zeros(1), "tap.name");
  check_malformed(tap(0, 1, 8), zeros(8) + shape + zeros(3), "tap: 1 bytes");
  // 2^32-1 cubed overflows 64 bits; no tensor has that many bytes.
  check_malformed(tap(0, 3, 0), std::vector<std::byte>(12, std::byte{255}) + zeros(2),
                  "tap.tensorBytes");
  check_malformed([](schemas::Header::Builder header) { header.initBody().initCredit(); }, zeros(1),
                  "credit");
}

BOOST_AUTO_TEST_SUITE_END()
