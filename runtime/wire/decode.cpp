#include "runtime/wire/decode.hpp"

#include <capnp/message.h>
#include <kj/exception.h>

#include <array>
#include <cstring>
#include <utility>

#include "runtime/wire/checksum.hpp"
#include "runtime/wire/encode.hpp"
#include "runtime/wire/internal/header_fields.hpp"
#include "runtime/wire/internal/limits.hpp"
#include "schemas/frame.capnp.h"

namespace cedar::wire {

namespace {

using internal::body_fields;
using internal::header_fields;
using internal::malformed;

/// A header is small and flat: struct pointers only.
constexpr int nesting_max = 4;
/// Reading every struct twice stays below it.
constexpr std::uint64_t traversal_words_max = 4 * header_bytes_max / sizeof(capnp::word);

void read_body(schemas::Header::Body::Reader in, body_fields& out) {
  out.kind = in.which();
  switch (in.which()) {
    case schemas::Header::Body::STEP_TABLE: {
      const auto table = in.getStepTable();
      out.spans = table.getSpans();
      out.tokens = table.getTokens();
      out.lookback = table.getLookback();
      out.taps = table.getTaps();
      out.want_logits = table.getWantLogits();
      out.sampling = table.getSampling();
      out.prefixes = table.getPrefixes();
      out.dropped = table.getDropped();
      break;
    }
    case schemas::Header::Body::ROW_BLOCK: {
      const auto block = in.getRowBlock();
      out.row_kind = static_cast<std::uint16_t>(block.getKind());
      out.layer = block.getLayer();
      out.reader = block.getReader();
      out.slice = block.getSlice();
      out.spans = block.getSpans();
      out.rows = block.getRows();
      out.row_bytes = block.getRowBytes();
      break;
    }
    case schemas::Header::Body::PROPOSAL:
      out.tokens = in.getProposal().getTokens();
      out.bytes = in.getProposal().getLogitsBytes();
      break;
    case schemas::Header::Body::VERDICT:
      out.commitments = in.getVerdict().getCommitments();
      break;
    case schemas::Header::Body::DRAFT_ORDERS:
      out.drafts = in.getDraftOrders().getOrders();
      break;
    case schemas::Header::Body::DRAFT_ANSWERS:
      out.drafts = in.getDraftAnswers().getDrafts();
      break;
    case schemas::Header::Body::IMAGE: {
      const auto image = in.getImage();
      out.request = image.getRequest();
      out.position = image.getPosition();
      out.rows = image.getRows();
      out.patch_rows = image.getPatchRows();
      out.patch_columns = image.getPatchColumns();
      out.bytes = image.getPixelBytes();
      break;
    }
    case schemas::Header::Body::TAP:
      out.type = static_cast<std::uint16_t>(in.getTap().getType());
      out.extents = in.getTap().getExtents();
      out.bytes = in.getTap().getTensorBytes();
      out.last = in.getTap().getLast();
      break;
    case schemas::Header::Body::CREDIT:
      out.messages = in.getCredit().getMessages();
      out.bytes = in.getCredit().getBytes();
      break;
  }
}

header_fields read_fields(kj::ArrayPtr<const capnp::word> segment) {
  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = traversal_words_max;
  limits.nestingLimit = nesting_max;
  capnp::SegmentArrayMessageReader reader(kj::arrayPtr(&segment, 1), limits);
  const auto in = reader.getRoot<schemas::Header>();
  header_fields out;
  out.version = in.getVersion();
  out.envelope = {edge_id{in.getEdge()}, in.getSequence(), in.getFingerprint()};
  out.epoch = epoch_id{in.getEpoch()};
  out.step = step_id{in.getStep()};
  // A newer version may mean anything by its body.
  if (out.version == protocol_version) read_body(in.getBody(), out.body);
  return out;
}

result<header_fields> parse_header(const flow::received_frame& frame) {
  const std::size_t bytes = frame.header.size();
  if (bytes > header_bytes_max || bytes % sizeof(capnp::word) != 0 ||
      bytes < internal::checksum_bytes + sizeof(capnp::word)) {
    return malformed("header", std::to_string(bytes) + " bytes");
  }
  const std::size_t segment_bytes = bytes - internal::checksum_bytes;
  std::uint64_t expected = 0;
  std::memcpy(&expected, frame.header.data() + segment_bytes, sizeof expected);
  if (checksum_of({std::span(frame.header).first(segment_bytes), frame.payload.span()}) !=
      expected) {
    return malformed("checksum", "header and payload do not match it");
  }
  std::array<capnp::word, header_bytes_max / sizeof(capnp::word)> words;
  std::memcpy(words.data(), frame.header.data(), segment_bytes);
  header_fields fields;
  const auto problem = kj::runCatchingExceptions([&] {
    fields =
        read_fields(kj::arrayPtr(std::as_const(words).data(), segment_bytes / sizeof(capnp::word)));
  });
  KJ_IF_MAYBE (exception, problem) {
    return malformed("header", exception->getDescription().cStr());
  }
  return fields;
}

}  // namespace

result<decoded> decode(flow::received_frame frame) {
  const auto fields = parse_header(frame);
  if (!fields) return fail(fields.error());
  if (fields->version != protocol_version) {
    return fail(errc::refused, "frame: protocol version " + std::to_string(fields->version) +
                                   ", this program speaks " + std::to_string(protocol_version));
  }
  auto message = internal::decode_body(*fields, std::move(frame.payload));
  if (!message) return fail(message.error());
  return decoded{fields->envelope, std::move(*message)};
}

}  // namespace cedar::wire
