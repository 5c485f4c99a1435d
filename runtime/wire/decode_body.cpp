#include <limits>
#include <optional>
#include <utility>

#include "runtime/flow/packed_sizes.hpp"
#include "runtime/wire/internal/header_fields.hpp"
#include "runtime/wire/internal/limits.hpp"
#include "runtime/wire/internal/packed.hpp"

namespace cedar::wire::internal {

namespace {

/// Turns the fields and the payload into a message; every step checks before it reads.
class body_decoder {
 public:
  body_decoder(const header_fields& fields, kernels::buffer payload)
      : fields_(fields), payload_(std::move(payload)) {}

  result<flow::message> decode() {
    switch (static_cast<body_kind>(body().kind)) {
      case body_kind::step_table:
        return step_table();
      case body_kind::row_block:
        return row_block();
      case body_kind::proposal:
        return proposal();
      case body_kind::verdict:
        return verdict();
      case body_kind::tap:
        return tap();
      case body_kind::credit:
        return credit();
      case body_kind::draft_orders:
        return draft_orders();
      case body_kind::draft_answers:
        return draft_answers();
      case body_kind::image:
        return image();
    }
    return malformed("body", "unknown kind " + std::to_string(body().kind));
  }

 private:
  const body_fields& body() const { return fields_.body; }

  /// Lists begin after the tensor; nothing if the payload is shorter than the tensor.
  std::optional<packed_reader> lists_after(std::uint64_t tensor_bytes) const {
    if (tensor_bytes > payload_.bytes()) return std::nullopt;
    return packed_reader(payload_.span().subspan(tensor_bytes));
  }

  tl::unexpected<error> short_of(const std::string& field, std::uint64_t needed) const {
    return malformed(field, std::to_string(needed) + " bytes exceed the payload of " +
                                std::to_string(payload_.bytes()));
  }
  tl::unexpected<error> too_long(const std::string& field, std::size_t left) const {
    return malformed(field, std::to_string(left) + " bytes of payload are left over");
  }

  flow::payload_ref tensor(std::uint64_t bytes) {
    if (bytes == 0) return nullptr;
    payload_.truncate(bytes);
    return flow::freeze(std::move(payload_));
  }

  /// Reads spans; on success they are consistent in themselves.
  result<std::vector<flow::row_span>> spans(packed_reader& lists, const std::string& field) const {
    if (!lists.holds(body().spans, flow::packed_span_bytes)) {
      return short_of(field, std::uint64_t{body().spans} * flow::packed_span_bytes);
    }
    std::vector<flow::row_span> out(body().spans);
    for (flow::row_span& span : out) {
      if (!lists.holds(1, flow::packed_span_bytes)) return short_of(field, flow::packed_span_bytes);
      span.request = request_id{lists.get<std::uint64_t>()};
      span.first_position = lists.get<std::uint32_t>();
      const auto rows = lists.get<std::uint32_t>();
      span.rows_count = rows % span_rows_limit;
      span.taps = static_cast<flow::tap_use>((rows & tap_use_mask) >> tap_use_shift);
      if (span.taps > flow::tap_use::none) return malformed(field, "an unknown use of taps");
      span.logits_from = lists.get<std::uint32_t>();
      span.decoder_begin = lists.get<std::uint32_t>();
      if ((rows & replay_flag) != 0) {
        if (!lists.holds(1, flow::packed_replay_bytes))
          return short_of(field, flow::packed_replay_bytes);
        span.begin = lists.get<std::uint32_t>();
        span.stored = lists.get<std::uint32_t>();
        if (span.stored == 0) return malformed(field, "a prefix of no position");
      }
      if (span.logits_from > span.rows_count) {
        return malformed(field, "logits begin at row " + std::to_string(span.logits_from) + " of " +
                                    std::to_string(span.rows_count));
      }
      if (span.rows_count > std::numeric_limits<std::uint32_t>::max() - span.first_position) {
        return malformed(field, "positions overflow");
      }
      if (span.logits_from < span.decoder_from()) {
        return malformed(field, "wanted rows begin before the decoder's rows");
      }
      if (!replay_fits(span)) {
        return malformed(field, "the request begins at " + std::to_string(span.begin) +
                                    ", after its span or outside its prefix");
      }
    }
    return out;
  }

  result<flow::message> step_table() {
    packed_reader lists(payload_.span());
    flow::step_table out;
    out.step = fields_.step;
    out.epoch = fields_.epoch;
    out.want_logits = body().want_logits;
    auto table = spans(lists, "stepTable.spans");
    if (!table) return fail(table.error());
    out.spans = std::move(*table);
    if (!rows_fit(flow::row_kind::embedded, out.spans, body().tokens)) {
      return malformed("stepTable.tokens", std::to_string(body().tokens) + " tokens for " +
                                               std::to_string(out.rows_count()) + " rows");
    }
    if (!read_tokens(lists, body().tokens, out.tokens)) {
      return short_of("stepTable.tokens", std::uint64_t{body().tokens} * flow::packed_token_bytes);
    }
    if (!read_tokens(lists, body().lookback, out.lookback)) {
      return short_of("stepTable.lookback",
                      std::uint64_t{body().lookback} * flow::packed_token_bytes);
    }
    if (!lists.holds(body().taps, flow::packed_text_prefix_bytes)) {
      return short_of("stepTable.taps",
                      std::uint64_t{body().taps} * flow::packed_text_prefix_bytes);
    }
    for (std::uint32_t i = 0; i < body().taps; ++i) {
      auto name = text(lists, "stepTable.taps");
      if (!name) return fail(name.error());
      out.taps.push_back(std::move(*name));
    }
    if (!lists.holds(body().sampling, flow::packed_sampling_bytes)) {
      return short_of("stepTable.sampling",
                      std::uint64_t{body().sampling} * flow::packed_sampling_bytes);
    }
    for (std::uint32_t i = 0; i < body().sampling; ++i) {
      auto entry = sampling(lists);
      if (!entry) return fail(entry.error());
      out.sampling.push_back(std::move(*entry));
    }
    if (const auto read = prefixes(lists, out); !read) return fail(read.error());
    if (lists.left() != 0) return too_long("stepTable", lists.left());
    return out;
  }

  result<void> prefixes(packed_reader& lists, flow::step_table& out) const {
    if (!lists.holds(body().prefixes, flow::packed_prefix_use_bytes))
      return short_of("stepTable.prefixes",
                      std::uint64_t{body().prefixes} * flow::packed_prefix_use_bytes);
    out.prefixes.resize(body().prefixes);
    for (flow::prefix_use& use : out.prefixes) {
      use.request = request_id{lists.get<std::uint64_t>()};
      use.prefix = prefix_id{lists.get<std::uint64_t>()};
    }
    if (body().dropped > flow::prefixes_dropped_max)
      return malformed("stepTable.dropped", std::to_string(body().dropped) + " prefixes");
    if (!lists.holds(body().dropped, flow::packed_prefix_bytes))
      return short_of("stepTable.dropped",
                      std::uint64_t{body().dropped} * flow::packed_prefix_bytes);
    out.dropped.resize(body().dropped);
    for (prefix_id& prefix : out.dropped) prefix = prefix_id{lists.get<std::uint64_t>()};
    return {};
  }

  result<flow::request_sampling> sampling(packed_reader& lists) const {
    const std::string field = "stepTable.sampling";
    if (!lists.holds(1, flow::packed_sampling_bytes))
      return short_of(field, flow::packed_sampling_bytes);
    flow::request_sampling out;
    flow::sampling_options& options = out.options;
    out.request = request_id{lists.get<std::uint64_t>()};
    out.prompt_tokens = lists.get<std::uint32_t>();
    options.temperature = lists.get<float>();
    options.top_k = lists.get<std::uint32_t>();
    options.top_p = lists.get<float>();
    options.min_p = lists.get<float>();
    options.repetition_penalty = lists.get<float>();
    options.presence_penalty = lists.get<float>();
    options.frequency_penalty = lists.get<float>();
    options.seed = lists.get<std::uint64_t>();
    options.choice = lists.get<std::uint32_t>();
    options.tokens_min = lists.get<std::uint32_t>();
    const auto biases = lists.get<std::uint32_t>();
    if (biases > flow::token_biases_max)
      return malformed(field, std::to_string(biases) + " token biases");
    if (!lists.holds(biases, flow::packed_bias_bytes))
      return short_of(field, std::uint64_t{biases} * flow::packed_bias_bytes);
    options.bias.resize(biases);
    for (flow::token_bias& bias : options.bias) {
      bias.token = lists.get<token_id>();
      bias.bias = lists.get<float>();
    }
    return out;
  }

  static bool read_tokens(packed_reader& lists, std::uint32_t count, std::vector<token_id>& out) {
    if (!lists.holds(count, flow::packed_token_bytes)) return false;
    out.resize(count);
    for (token_id& token : out) token = lists.get<token_id>();
    return true;
  }

  result<std::string> text(packed_reader& lists, const std::string& field) const {
    if (!lists.holds(1, flow::packed_text_prefix_bytes)) {
      return short_of(field, flow::packed_text_prefix_bytes);
    }
    const auto bytes = lists.get<std::uint16_t>();
    if (bytes > tap_name_bytes_max) {
      return malformed(field, "a name of " + std::to_string(bytes) + " bytes");
    }
    if (!lists.holds(bytes, 1)) return short_of(field, bytes);
    return lists.get_text(bytes);
  }

  result<flow::message> row_block() {
    if (body().row_kind > static_cast<std::uint16_t>(flow::row_kind::engram_slots)) {
      return malformed("rowBlock.kind", "unknown kind " + std::to_string(body().row_kind));
    }
    const std::uint64_t tensor_bytes = std::uint64_t{body().rows} * body().row_bytes;
    auto lists = lists_after(tensor_bytes);
    if (!lists) return short_of("rowBlock.rows", tensor_bytes);
    flow::row_block out;
    out.kind = static_cast<flow::row_kind>(body().row_kind);
    out.step = fields_.step;
    out.epoch = fields_.epoch;
    out.layer = body().layer;
    out.reader = body().reader;
    out.slice = body().slice;
    out.rows_count = body().rows;
    out.row_bytes = body().row_bytes;
    auto table = spans(*lists, "rowBlock.spans");
    if (!table) return fail(table.error());
    out.spans = std::move(*table);
    if (!rows_fit(out.kind, out.spans, out.rows_count)) {
      return malformed("rowBlock.rows",
                       std::to_string(out.rows_count) + " are not those of the spans");
    }
    if (lists->left() != 0) return too_long("rowBlock", lists->left());
    out.payload = tensor(tensor_bytes);
    return out;
  }

  result<flow::message> proposal() {
    auto lists = lists_after(body().bytes);
    if (!lists) return short_of("proposal.logitsBytes", body().bytes);
    const std::uint64_t row_unit = std::uint64_t{body().tokens} * sizeof(float);
    if (body().bytes != 0 && (row_unit == 0 || body().bytes % row_unit != 0)) {
      return malformed("proposal.logitsBytes", std::to_string(body().bytes) + " for " +
                                                   std::to_string(body().tokens) + " tokens");
    }
    if (!lists->holds(body().tokens, flow::packed_proposed_token_bytes)) {
      return short_of("proposal.tokens",
                      std::uint64_t{body().tokens} * flow::packed_proposed_token_bytes);
    }
    flow::proposal out;
    out.step = fields_.step;
    out.epoch = fields_.epoch;
    out.tokens.resize(body().tokens);
    for (flow::proposed_token& token : out.tokens) {
      token.request = request_id{lists->get<std::uint64_t>()};
      token.position = lists->get<std::uint32_t>();
      token.token = lists->get<token_id>();
      token.log_probability = lists->get<float>();
    }
    if (lists->left() != 0) return too_long("proposal", lists->left());
    out.logits = tensor(body().bytes);
    return out;
  }

  result<flow::message> verdict() {
    packed_reader lists(payload_.span());
    if (!lists.holds(body().commitments, flow::packed_commitment_bytes)) {
      return short_of("verdict.commitments",
                      std::uint64_t{body().commitments} * flow::packed_commitment_bytes);
    }
    flow::verdict out;
    out.step = fields_.step;
    out.epoch = fields_.epoch;
    out.commitments.resize(body().commitments);
    for (flow::commitment& commitment : out.commitments) {
      if (!lists.holds(1, flow::packed_commitment_bytes))
        return short_of("verdict.commitments", flow::packed_commitment_bytes);
      commitment.request = request_id{lists.get<std::uint64_t>()};
      commitment.committed = lists.get<std::uint32_t>();
      const auto finished = lists.get<std::uint8_t>();
      if (finished > finished_and_kept)
        return malformed("verdict.finished", std::to_string(finished));
      commitment.finished = finished != 0;
      if (finished != finished_and_kept) continue;
      if (!lists.holds(1, flow::packed_kept_bytes))
        return short_of("verdict.kept", flow::packed_kept_bytes);
      commitment.kept = prefix_id{lists.get<std::uint64_t>()};
      commitment.kept_positions = lists.get<std::uint32_t>();
      if (commitment.kept == prefix_id{} || commitment.kept_positions > commitment.committed)
        return malformed("verdict.kept", "no name, or positions beyond the request's rows");
    }
    if (lists.left() != 0) return too_long("verdict", lists.left());
    return out;
  }

  result<flow::message> draft_orders() {
    packed_reader lists(payload_.span());
    if (!lists.holds(body().drafts, flow::packed_draft_order_bytes)) {
      return short_of("draftOrders.orders",
                      std::uint64_t{body().drafts} * flow::packed_draft_order_bytes);
    }
    flow::draft_orders out;
    out.step = fields_.step;
    out.epoch = fields_.epoch;
    out.orders.resize(body().drafts);
    for (flow::draft_order& order : out.orders) {
      order.request = request_id{lists.get<std::uint64_t>()};
      order.last = lists.get<token_id>();
      order.position = lists.get<std::uint32_t>();
      order.tokens_max = lists.get<std::uint32_t>();
    }
    if (lists.left() != 0) return too_long("draftOrders", lists.left());
    return out;
  }

  result<flow::message> draft_answers() {
    packed_reader lists(payload_.span());
    if (!lists.holds(body().drafts, flow::packed_draft_bytes)) {
      return short_of("draftAnswers.drafts",
                      std::uint64_t{body().drafts} * flow::packed_draft_bytes);
    }
    flow::draft_answers out;
    out.step = fields_.step;
    out.epoch = fields_.epoch;
    for (std::uint32_t i = 0; i < body().drafts; ++i) {
      auto one = draft(lists);
      if (!one) return fail(one.error());
      out.drafts.push_back(std::move(*one));
    }
    if (lists.left() != 0) return too_long("draftAnswers", lists.left());
    return out;
  }

  result<flow::draft> draft(packed_reader& lists) const {
    if (!lists.holds(1, flow::packed_draft_bytes))
      return short_of("draftAnswers.drafts", flow::packed_draft_bytes);
    flow::draft out;
    out.request = request_id{lists.get<std::uint64_t>()};
    out.position = lists.get<std::uint32_t>();
    const auto tokens = lists.get<std::uint8_t>();
    const auto confidences = lists.get<std::uint8_t>();
    if (confidences != 0 && confidences != tokens)
      return malformed("draftAnswers.confidences",
                       std::to_string(confidences) + " of " + std::to_string(tokens) + " tokens");
    if (!read_tokens(lists, tokens, out.tokens))
      return short_of("draftAnswers.tokens", tokens * flow::packed_drafted_token_bytes);
    if (!lists.holds(confidences, flow::packed_confidence_bytes))
      return short_of("draftAnswers.confidences", confidences * flow::packed_confidence_bytes);
    out.confidences.resize(confidences);
    for (float& confidence : out.confidences) {
      confidence = lists.get<float>();
      if (!is_probability(confidence))
        return malformed("draftAnswers.confidences", "one is no probability");
    }
    return out;
  }

  result<flow::message> tap() {
    if (body().type > static_cast<std::uint16_t>(kernels::dtype::i64)) {
      return malformed("tap.type", "unknown type " + std::to_string(body().type));
    }
    if (body().extents > tap_extents_max) {
      return malformed("tap.extents", std::to_string(body().extents) + " dimensions");
    }
    auto lists = lists_after(body().bytes);
    if (!lists) return short_of("tap.tensorBytes", body().bytes);
    if (!lists->holds(body().extents, flow::packed_extent_bytes)) {
      return short_of("tap.extents", body().extents * flow::packed_extent_bytes);
    }
    flow::tap out;
    out.step = fields_.step;
    out.epoch = fields_.epoch;
    out.type = static_cast<kernels::dtype>(body().type);
    out.shape.resize(body().extents);
    for (std::uint32_t& extent : out.shape) extent = lists->get<std::uint32_t>();
    if (shape_bytes(out.shape, out.type) != body().bytes) {
      return malformed("tap.tensorBytes",
                       std::to_string(body().bytes) + " bytes are not those of the shape");
    }
    auto name = text(*lists, "tap.name");
    if (!name) return fail(name.error());
    out.name = std::move(*name);
    if (lists->left() != 0) return too_long("tap", lists->left());
    out.last = body().last;
    if (out.last && (!out.name.empty() || out.shape != std::vector<std::uint32_t>{0}))
      return malformed("tap.last", "the end of taps has a name or elements");
    out.payload = tensor(body().bytes);
    return out;
  }

  result<flow::message> image() {
    const auto lists = lists_after(body().bytes);
    if (!lists) return short_of("image.pixelBytes", body().bytes);
    if (lists->left() != 0) return too_long("image", lists->left());
    flow::step_image out{fields_.step, fields_.epoch, {}};
    out.image.request = request_id{body().request};
    out.image.image.position = body().position;
    out.image.image.rows_count = body().rows;
    out.image.image.patch_rows = body().patch_rows;
    out.image.image.patch_columns = body().patch_columns;
    if (!image_fits(out.image.image, body().bytes))
      return malformed("image.pixelBytes", std::to_string(body().bytes) + " are not those of " +
                                               std::to_string(body().patch_rows) + " x " +
                                               std::to_string(body().patch_columns) +
                                               " patches in " + std::to_string(body().rows) +
                                               " positions");
    out.image.image.pixels = tensor(body().bytes);
    return out;
  }

  result<flow::message> credit() const {
    if (payload_.bytes() != 0) return too_long("credit", payload_.bytes());
    return flow::credit{fields_.epoch, body().messages, body().bytes};
  }

  const header_fields& fields_;
  kernels::buffer payload_;
};

}  // namespace

result<flow::message> decode_body(const header_fields& fields, kernels::buffer payload) {
  return body_decoder(fields, std::move(payload)).decode();
}

}  // namespace cedar::wire::internal
