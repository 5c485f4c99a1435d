#include "runtime/wire/encode.hpp"

#include <capnp/message.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/base/check.hpp"
#include "runtime/flow/packed_sizes.hpp"
#include "runtime/wire/checksum.hpp"
#include "runtime/wire/internal/limits.hpp"
#include "runtime/wire/internal/packed.hpp"
#include "schemas/frame.capnp.h"

namespace cedar::wire {

namespace {

using internal::packed_writer;
using body_builder = schemas::Header::Body::Builder;

// The enumerations of the schemas are those of the messages, value by value (the last one of each).
static_assert(static_cast<int>(schemas::RowKind::ENGRAM_SLOTS) ==
              static_cast<int>(flow::row_kind::engram_slots));
static_assert(static_cast<int>(schemas::ElementType::I64) == static_cast<int>(kernels::dtype::i64));

std::uint32_t count_of(std::size_t count) {
  CEDAR_REQUIRE(count <= std::numeric_limits<std::uint32_t>::max(), "list too long for a frame");
  return static_cast<std::uint32_t>(count);
}

void put_span(packed_writer& lists, const flow::row_span& span) {
  lists.put(span.request.value);
  lists.put(span.first_position);
  lists.put(span.rows_count | static_cast<std::uint32_t>(span.taps) << internal::tap_use_shift |
            (span.stored > 0 ? internal::replay_flag : 0));
  lists.put(span.logits_from);
  lists.put(span.decoder_begin);
  if (span.stored == 0) return;
  lists.put(span.begin);
  lists.put(span.stored);
}

void put_sampling(packed_writer& lists, const flow::request_sampling& entry) {
  const flow::sampling_options& options = entry.options;
  CEDAR_REQUIRE(options.bias.size() <= flow::token_biases_max, "too many token biases");
  lists.put(entry.request.value);
  lists.put(entry.prompt_tokens);
  lists.put(options.temperature);
  lists.put(options.top_k);
  lists.put(options.top_p);
  lists.put(options.min_p);
  lists.put(options.repetition_penalty);
  lists.put(options.presence_penalty);
  lists.put(options.frequency_penalty);
  lists.put(options.seed);
  lists.put(options.choice);
  lists.put(options.tokens_min);
  lists.put(static_cast<std::uint32_t>(options.bias.size()));
  for (const flow::token_bias& bias : options.bias) {
    lists.put(bias.token);
    lists.put(bias.bias);
  }
}

void require_spans(const std::vector<flow::row_span>& spans) {
  for (const flow::row_span& span : spans) {
    CEDAR_REQUIRE(span.logits_from <= span.rows_count, "logits begin after the span's rows");
    CEDAR_REQUIRE(span.logits_from >= span.decoder_from(), "wanted rows walk the decoder");
    CEDAR_REQUIRE(span.rows_count < internal::span_rows_limit, "too many rows in a span");
    CEDAR_REQUIRE(internal::replay_fits(span), "a replay begins before its span and in its prefix");
    CEDAR_REQUIRE(
        span.rows_count <= std::numeric_limits<std::uint32_t>::max() - span.first_position,
        "positions of a span overflow");
  }
}

/// Fills the header's body and the lists of one message; returns its tensor.
class body_encoder {
 public:
  body_encoder(body_builder body, packed_writer& lists) : body_(body), lists_(lists) {}

  flow::payload_ref operator()(const flow::step_table& table) {
    require_spans(table.spans);
    CEDAR_REQUIRE(internal::rows_fit(flow::row_kind::embedded, table.spans, table.tokens.size()),
                  "a step table has one token per row");
    auto out = body_.initStepTable();
    out.setSpans(count_of(table.spans.size()));
    out.setTokens(count_of(table.tokens.size()));
    out.setLookback(count_of(table.lookback.size()));
    out.setTaps(count_of(table.taps.size()));
    out.setWantLogits(table.want_logits);
    out.setSampling(count_of(table.sampling.size()));
    for (const flow::row_span& span : table.spans) put_span(lists_, span);
    for (const token_id token : table.tokens) lists_.put(token);
    for (const token_id token : table.lookback) lists_.put(token);
    for (const std::string& name : table.taps) put_name(name);
    for (const flow::request_sampling& entry : table.sampling) put_sampling(lists_, entry);
    CEDAR_REQUIRE(table.dropped.size() <= flow::prefixes_dropped_max, "too many dropped prefixes");
    out.setPrefixes(count_of(table.prefixes.size()));
    out.setDropped(count_of(table.dropped.size()));
    for (const flow::prefix_use& use : table.prefixes) {
      lists_.put(use.request.value);
      lists_.put(use.prefix.value);
    }
    for (const prefix_id prefix : table.dropped) lists_.put(prefix.value);
    return nullptr;
  }

  flow::payload_ref operator()(const flow::row_block& block) {
    require_spans(block.spans);
    CEDAR_REQUIRE(internal::rows_fit(block.kind, block.spans, block.rows_count),
                  "a row block's rows are those of its spans");
    CEDAR_REQUIRE(
        std::uint64_t{block.rows_count} * block.row_bytes == flow::bytes_of(block.payload).size(),
        "a row block's payload is rows_count * row_bytes");
    auto out = body_.initRowBlock();
    out.setKind(static_cast<schemas::RowKind>(block.kind));
    out.setLayer(block.layer);
    out.setReader(block.reader);
    out.setSlice(block.slice);
    out.setSpans(count_of(block.spans.size()));
    out.setRows(block.rows_count);
    out.setRowBytes(block.row_bytes);
    for (const flow::row_span& span : block.spans) put_span(lists_, span);
    return block.payload;
  }

  flow::payload_ref operator()(const flow::proposal& value) {
    const std::size_t logits_bytes = flow::bytes_of(value.logits).size();
    CEDAR_REQUIRE(logits_bytes == 0 || (!value.tokens.empty() &&
                                        logits_bytes % (value.tokens.size() * sizeof(float)) == 0),
                  "logits are [tokens, vocabulary] f32");
    auto out = body_.initProposal();
    out.setTokens(count_of(value.tokens.size()));
    out.setLogitsBytes(logits_bytes);
    for (const flow::proposed_token& token : value.tokens) {
      lists_.put(token.request.value);
      lists_.put(token.position);
      lists_.put(token.token);
      lists_.put(token.log_probability);
    }
    return value.logits;
  }

  flow::payload_ref operator()(const flow::verdict& value) {
    body_.initVerdict().setCommitments(count_of(value.commitments.size()));
    for (const flow::commitment& commitment : value.commitments) {
      lists_.put(commitment.request.value);
      lists_.put(commitment.committed);
      const bool keeps = commitment.kept != prefix_id{};
      CEDAR_REQUIRE(!keeps || commitment.finished, "only what a request leaves is kept");
      lists_.put(keeps ? internal::finished_and_kept
                       : static_cast<std::uint8_t>(commitment.finished));
      if (!keeps) continue;
      lists_.put(commitment.kept.value);
      lists_.put(commitment.kept_positions);
    }
    return nullptr;
  }

  flow::payload_ref operator()(const flow::draft_orders& value) {
    body_.initDraftOrders().setOrders(count_of(value.orders.size()));
    for (const flow::draft_order& order : value.orders) {
      lists_.put(order.request.value);
      lists_.put(order.last);
      lists_.put(order.position);
      lists_.put(order.tokens_max);
    }
    return nullptr;
  }

  flow::payload_ref operator()(const flow::draft_answers& value) {
    body_.initDraftAnswers().setDrafts(count_of(value.drafts.size()));
    for (const flow::draft& draft : value.drafts) put_draft(draft);
    return nullptr;
  }

  flow::payload_ref operator()(const flow::tap& value) {
    CEDAR_REQUIRE(value.shape.size() <= internal::tap_extents_max, "tap of too many dimensions");
    CEDAR_REQUIRE(internal::shape_bytes(value.shape, value.type) ==
                      std::uint64_t{flow::bytes_of(value.payload).size()},
                  "a tap's payload is its shape's");
    auto out = body_.initTap();
    out.setType(static_cast<schemas::ElementType>(value.type));
    out.setExtents(static_cast<std::uint8_t>(value.shape.size()));
    out.setTensorBytes(flow::bytes_of(value.payload).size());
    out.setLast(value.last);
    for (const std::uint32_t extent : value.shape) lists_.put(extent);
    put_name(value.name);
    return value.payload;
  }

  flow::payload_ref operator()(const flow::step_image& value) {
    const flow::prompt_image& image = value.image.image;
    CEDAR_REQUIRE(internal::image_fits(image, flow::bytes_of(image.pixels).size()),
                  "an image has rows, patches and their pixels");
    auto out = body_.initImage();
    out.setRequest(value.image.request.value);
    out.setPosition(image.position);
    out.setRows(image.rows_count);
    out.setPatchRows(image.patch_rows);
    out.setPatchColumns(image.patch_columns);
    out.setPixelBytes(flow::bytes_of(image.pixels).size());
    return image.pixels;
  }

  flow::payload_ref operator()(const flow::credit& value) {
    auto out = body_.initCredit();
    out.setMessages(value.messages);
    out.setBytes(value.bytes);
    return nullptr;
  }

 private:
  void put_draft(const flow::draft& draft) {
    CEDAR_REQUIRE(draft.tokens.size() <= flow::draft_tokens_limit, "too long a draft");
    CEDAR_REQUIRE(draft.confidences.empty() || draft.confidences.size() == draft.tokens.size(),
                  "a draft has a confidence for each token, or none");
    lists_.put(draft.request.value);
    lists_.put(draft.position);
    lists_.put(static_cast<std::uint8_t>(draft.tokens.size()));
    lists_.put(static_cast<std::uint8_t>(draft.confidences.size()));
    for (const token_id token : draft.tokens) lists_.put(token);
    for (const float confidence : draft.confidences) {
      CEDAR_REQUIRE(internal::is_probability(confidence), "a confidence is a probability");
      lists_.put(confidence);
    }
  }
  void put_name(const std::string& name) {
    CEDAR_REQUIRE(name.size() <= internal::tap_name_bytes_max, "tap name '" + name + "' too long");
    lists_.put_text(name);
  }

  body_builder body_;
  packed_writer& lists_;
};

std::uint64_t step_of(const flow::message& message) {
  return std::visit(
      [](const auto& body) {
        if constexpr (requires { body.step; }) {
          return body.step.value;
        } else {
          return std::uint64_t{0};
        }
      },
      message);
}

/// The segment, then the checksum over segment, tensor and lists.
std::vector<std::byte> seal(capnp::MessageBuilder& builder, const flow::frame& frame) {
  const auto segments = builder.getSegmentsForOutput();
  CEDAR_ASSERT(segments.size() == 1, "a header is one segment");
  const auto segment = segments[0].asBytes();
  const std::size_t bytes = segment.size() + internal::checksum_bytes;
  CEDAR_ASSERT(bytes <= header_bytes_max, "a header fits its bound");
  std::vector<std::byte> header(bytes);
  std::memcpy(header.data(), segment.begin(), segment.size());
  const std::uint64_t checksum =
      checksum_of({std::span(header).first(segment.size()), flow::bytes_of(frame.tensor),
                   std::span(frame.lists)});
  std::memcpy(header.data() + segment.size(), &checksum, sizeof checksum);
  return header;
}

}  // namespace

flow::frame encode(const flow::envelope& envelope, const flow::message& message) {
  // Zeroed, as Cap'n Proto requires of a first segment it did not allocate.
  std::array<capnp::word, header_bytes_max / sizeof(capnp::word)> scratch{};
  capnp::MallocMessageBuilder builder(kj::arrayPtr(scratch.data(), scratch.size()));
  auto header = builder.initRoot<schemas::Header>();
  header.setVersion(protocol_version);
  header.setEdge(envelope.edge.value);
  header.setEpoch(flow::epoch_of(message).value);
  header.setSequence(envelope.sequence);
  header.setStep(step_of(message));
  header.setFingerprint(envelope.fingerprint);

  packed_writer lists(flow::list_bytes(message));
  flow::frame frame;
  frame.tensor = std::visit(body_encoder(header.initBody(), lists), message);
  frame.lists = lists.take();
  frame.header = seal(builder, frame);
  return frame;
}

}  // namespace cedar::wire
