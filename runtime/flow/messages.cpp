#include "runtime/flow/messages.hpp"

#include "runtime/flow/packed_sizes.hpp"

namespace cedar::flow {

namespace {

std::uint64_t span_bytes(const std::vector<row_span>& spans) noexcept {
  std::uint64_t bytes = spans.size() * packed_span_bytes;
  for (const row_span& span : spans) bytes += span.stored > 0 ? packed_replay_bytes : 0;
  return bytes;
}

struct list_bytes_of {
  std::uint64_t operator()(const step_table& table) const noexcept {
    std::uint64_t bytes = span_bytes(table.spans) +
                          (table.tokens.size() + table.lookback.size()) * packed_token_bytes;
    for (const std::string& name : table.taps) bytes += packed_text_prefix_bytes + name.size();
    for (const request_sampling& entry : table.sampling)
      bytes += packed_sampling_bytes + entry.options.bias.size() * packed_bias_bytes;
    return bytes + table.prefixes.size() * packed_prefix_use_bytes +
           table.dropped.size() * packed_prefix_bytes;
  }
  std::uint64_t operator()(const row_block& block) const noexcept {
    return span_bytes(block.spans);
  }
  std::uint64_t operator()(const proposal& value) const noexcept {
    return value.tokens.size() * packed_proposed_token_bytes;
  }
  std::uint64_t operator()(const verdict& value) const noexcept {
    std::uint64_t bytes = value.commitments.size() * packed_commitment_bytes;
    for (const commitment& one : value.commitments)
      bytes += one.kept != prefix_id{} ? packed_kept_bytes : 0;
    return bytes;
  }
  std::uint64_t operator()(const tap& value) const noexcept {
    return value.shape.size() * packed_extent_bytes + packed_text_prefix_bytes + value.name.size();
  }
  std::uint64_t operator()(const draft_orders& value) const noexcept {
    return value.orders.size() * packed_draft_order_bytes;
  }
  std::uint64_t operator()(const draft_answers& value) const noexcept {
    std::uint64_t bytes = value.drafts.size() * packed_draft_bytes;
    for (const draft& one : value.drafts)
      bytes += one.tokens.size() * packed_drafted_token_bytes +
               one.confidences.size() * packed_confidence_bytes;
    return bytes;
  }
  std::uint64_t operator()(const credit&) const noexcept { return 0; }
  std::uint64_t operator()(const step_image&) const noexcept { return 0; }
};

struct tensor_bytes_of {
  std::uint64_t operator()(const row_block& block) const { return bytes_of(block.payload).size(); }
  std::uint64_t operator()(const proposal& value) const { return bytes_of(value.logits).size(); }
  std::uint64_t operator()(const tap& value) const { return bytes_of(value.payload).size(); }
  std::uint64_t operator()(const step_image& value) const {
    return bytes_of(value.image.image.pixels).size();
  }
  template <class Other>
  std::uint64_t operator()(const Other&) const {
    return 0;
  }
};

std::string_view name_of(row_kind kind) noexcept {
  switch (kind) {
    case row_kind::embedded:
      return "embedded";
    case row_kind::activation:
      return "activation";
    case row_kind::engram_rows:
      return "engram_rows";
    case row_kind::head_input:
      return "head_input";
    case row_kind::shared_kv:
      return "shared_kv";
    case row_kind::index_keys:
      return "index_keys";
    case row_kind::selection:
      return "selection";
    case row_kind::candidates:
      return "candidates";
    case row_kind::gather_request:
      return "gather_request";
    case row_kind::gathered:
      return "gathered";
    case row_kind::draft_taps:
      return "draft_taps";
    case row_kind::image_rows:
      return "image_rows";
    case row_kind::expert_rows:
      return "expert_rows";
    case row_kind::expert_outputs:
      return "expert_outputs";
    case row_kind::index_query:
      return "index_query";
    case row_kind::pool_query:
      return "pool_query";
    case row_kind::index_choice:
      return "index_choice";
    case row_kind::pool_choice:
      return "pool_choice";
    case row_kind::engram_slots:
      return "engram_slots";
  }
  return "?";
}

struct kind_name {
  std::string_view operator()(const step_table&) const noexcept { return "step_table"; }
  std::string_view operator()(const row_block& block) const noexcept { return name_of(block.kind); }
  std::string_view operator()(const proposal&) const noexcept { return "proposal"; }
  std::string_view operator()(const verdict&) const noexcept { return "verdict"; }
  std::string_view operator()(const tap&) const noexcept { return "tap"; }
  std::string_view operator()(const draft_orders&) const noexcept { return "draft_orders"; }
  std::string_view operator()(const draft_answers&) const noexcept { return "draft_answers"; }
  std::string_view operator()(const step_image&) const noexcept { return "image"; }
  std::string_view operator()(const credit&) const noexcept { return "credit"; }
};

}  // namespace

std::uint64_t list_bytes(const message& value) noexcept {
  return std::visit(list_bytes_of{}, value);
}

std::uint64_t credit_bytes(const message& value) noexcept {
  return list_bytes(value) + std::visit(tensor_bytes_of{}, value);
}

epoch_id epoch_of(const message& value) noexcept {
  return std::visit([](const auto& body) { return body.epoch; }, value);
}

std::string_view kind_of(const message& value) noexcept {
  return std::visit(kind_name{}, value);
}

}  // namespace cedar::flow
