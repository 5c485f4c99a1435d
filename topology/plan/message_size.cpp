#include "topology/plan/message_size.hpp"

#include <algorithm>

#include "kernels/ops/entry_format.hpp"
#include "runtime/flow/packed_sizes.hpp"
#include "runtime/model/compressor.hpp"
#include "runtime/model/image_tokens.hpp"
#include "runtime/model/sharing.hpp"
#include "topology/plan/internal/element_bytes.hpp"

namespace cedar::topology {

namespace {

constexpr std::uint64_t flag_bytes = 1;
// Engram tables, rows for experts: one E8M0 scale for 32 E4M3 codes.
constexpr std::uint64_t codes_per_scale = 32;
constexpr std::uint64_t position_bytes = 4;  // of a selected entry or block: i32
constexpr std::uint64_t expert_id_bytes = 4;  // i32
constexpr std::uint64_t place_bytes = 4;  // of a table row: i32
constexpr std::uint64_t tap_dimensions_max = 4;

message_size rows_size(std::uint64_t bytes, bool in_decoder) noexcept {
  message_size size{.per_request = flow::packed_span_bytes};
  (in_decoder ? size.per_decoder_row : size.per_row) = bytes;
  return size;
}

std::uint64_t main_entry_bytes(const model::model_config& config) noexcept {
  return kernels::entry_bytes(model::global_entry_format, config.head_dim);
}

std::uint64_t table_row_bytes(const model::model_config& config) noexcept {
  return config.engram.head_dim + (config.engram.head_dim + codes_per_scale - 1) / codes_per_scale;
}

}  // namespace

message_size step_table_size() noexcept {
  return {.per_request = flow::packed_span_bytes,
          .per_row = flow::packed_token_bytes,
          .per_earlier_id = flow::packed_token_bytes};
}

message_size embedded_size(const model::model_config& config) noexcept {
  return {.per_request = flow::packed_span_bytes,
          .per_row = config.width * bf16_bytes + flag_bytes};
}

message_size activation_size(const model::model_config& config, bool in_decoder) noexcept {
  const std::uint64_t streams = config.streams;
  return rows_size(streams * config.width * bf16_bytes + streams * f32_bytes + flag_bytes,
                   in_decoder);
}

message_size engram_rows_size(const model::model_config& config) noexcept {
  return {.per_request = flow::packed_span_bytes,
          .per_row = config.engram_columns() * table_row_bytes(config)};
}

message_size engram_slots_size(const model::model_config& config) noexcept {
  return {.per_request = flow::packed_span_bytes,
          .per_table_row = place_bytes + table_row_bytes(config)};
}

message_size head_input_size(const model::model_config& config) noexcept {
  return {.per_request = flow::packed_span_bytes, .per_wanted = config.width * bf16_bytes};
}

message_size shared_kv_size(const model::model_config& config) noexcept {
  return {.per_request = flow::packed_span_bytes, .per_entry = main_entry_bytes(config)};
}

message_size index_keys_size(const model::model_config& config) noexcept {
  return {.per_request = flow::packed_span_bytes,
          .per_entry = kernels::entry_bytes(model::index_entry_format, config.index_head_dim)};
}

message_size selection_size(const model::model_config& config, bool in_decoder) noexcept {
  return rows_size(config.index_topk * position_bytes, in_decoder);
}

message_size candidates_size(const model::model_config& config, bool in_decoder) noexcept {
  return rows_size(config.candidate_blocks * position_bytes, in_decoder);
}

message_size gathered_size(const model::model_config& config) noexcept {
  return {.per_request = flow::packed_span_bytes, .per_selected = main_entry_bytes(config)};
}

message_size proposal_size(const model::model_config& config, bool whole_logits) noexcept {
  return {.per_wanted = flow::packed_proposed_token_bytes +
                        (whole_logits ? config.vocabulary * f32_bytes : 0)};
}

message_size verdict_size() noexcept {
  return {.per_request = flow::packed_commitment_bytes};
}

message_size draft_taps_size(const model::model_config& config) noexcept {
  return {.per_request = flow::packed_span_bytes, .per_tapped_row = config.width * bf16_bytes};
}

message_size draft_orders_size() noexcept {
  return {.per_order = flow::packed_draft_order_bytes};
}

message_size draft_answers_size() noexcept {
  return {.per_order = flow::packed_draft_bytes,
          .per_drafted_token = flow::packed_drafted_token_bytes + flow::packed_confidence_bytes};
}

message_size image_rows_size(const model::model_config& config) noexcept {
  return {.per_request = flow::packed_span_bytes, .per_image_row = config.width * bf16_bytes};
}

message_size expert_rows_size(const model::model_config& config) noexcept {
  const std::uint64_t scales = config.width / codes_per_scale;
  return {.per_request = flow::packed_span_bytes,
          .per_routed_row =
              config.experts_per_token * (expert_id_bytes + f32_bytes) + config.width + scales};
}

message_size expert_outputs_size(const model::model_config& config) noexcept {
  return {.per_request = flow::packed_span_bytes, .per_choice = config.width * bf16_bytes};
}

message_size query_size(const model::model_config& config, bool restricted) noexcept {
  const std::uint64_t head =
      kernels::entry_bytes(model::index_entry_format, config.index_head_dim) + bf16_bytes;
  return {.per_request = flow::packed_span_bytes,
          .per_asking_row = config.index_heads * head +
                            (restricted ? config.candidate_blocks * position_bytes : 0)};
}

message_size choice_size(const model::model_config& config, bool candidates) noexcept {
  const std::uint64_t choices = config.index_topk + (candidates ? config.candidate_blocks : 0);
  return {.per_request = flow::packed_span_bytes,
          .per_asking_row = choices * (position_bytes + bf16_bytes)};
}

std::uint64_t image_cells_max(const model::model_config& config, std::uint64_t context) noexcept {
  constexpr std::uint64_t around = 3;  // start, newline, end
  const std::uint64_t span = std::min<std::uint64_t>(config.vision.max_image_tokens, context);
  return config.vision.layers == 0 ? 0 : span - std::min(span, around);
}

std::uint64_t cell_bytes(const model::model_config& config) noexcept {
  constexpr std::uint64_t channels = 3;
  const std::uint64_t side = std::uint64_t{config.vision.downsample} * config.vision.patch;
  return channels * side * side;
}

std::uint64_t step_cells_max(const model::model_config& config, std::uint64_t rows,
                             std::uint64_t requests, std::uint64_t context) noexcept {
  return rows + requests * image_cells_max(config, context);
}

std::uint64_t tapped_rows_max(const model::model_config& config) noexcept {
  return std::uint64_t{config.window} + config.dspark.block_size + 1;
}

step_shape shape_of(const flow::step_table& table, const model::model_config& config) noexcept {
  step_shape shape;
  shape.requests = table.spans.size();
  shape.rows = table.rows_count();
  shape.decoder_rows = table.decoder_count();
  shape.wanted = table.logits_count();
  for (const flow::row_span& span : table.spans) {
    shape.earlier_ids += std::min(span.first_position, config.engram_lookback());
    shape.tapped +=
        span.tapped_count(config.window, static_cast<std::uint32_t>(tapped_rows_max(config)));
  }
  shape.image_rows = static_cast<std::uint64_t>(
      std::ranges::count(model::image_flags(config, table.tokens), std::uint8_t{1}));
  return shape;
}

std::uint64_t entries_of(const flow::step_table& table, std::uint32_t ratio,
                         const model::index_shard* shard) noexcept {
  const auto held = [&](std::uint32_t entries) { return shard ? shard->count(entries) : entries; };
  std::uint64_t entries = 0;
  for (const flow::row_span& span : table.spans) {
    const std::uint32_t first = span.first_entry(ratio);
    entries += held(first + span.entries_count(ratio)) - held(first);
  }
  return entries;
}

std::uint64_t asking_of(const flow::step_table& table, std::uint32_t ratio,
                        const model::index_shard& shard, bool in_decoder) noexcept {
  std::uint64_t rows = 0;
  for (const flow::row_span& span : table.spans)
    for (std::uint32_t row = in_decoder ? span.decoder_from() : 0; row < span.rows_count; ++row)
      rows += shard.count((span.first_position + row + 1) / ratio) > 0 ? 1 : 0;
  return rows;
}

std::uint64_t selected_of(const flow::step_table& table, const model::model_config& config,
                          const model::layer_schedule& source, bool in_decoder) noexcept {
  std::uint64_t selected = 0;
  for (const flow::row_span& span : table.spans)
    for (std::uint32_t row = in_decoder ? span.decoder_from() : 0; row < span.rows_count; ++row)
      selected += model::selected_count(config, source, span.first_position + row);
  return selected;
}

std::uint64_t entries_max(std::uint64_t rows, std::uint64_t requests,
                          std::uint32_t ratio) noexcept {
  // A request whose tail lacks one position completes an entry with its first row.
  return std::min(rows, (rows + requests * (ratio - 1)) / ratio);
}

std::uint64_t tap_bytes_max(const model::model_config& config, std::uint64_t rows,
                            std::uint64_t context) noexcept {
  const std::uint64_t widest = std::max({
      context,
      (std::uint64_t{config.streams} + 1) * config.width,
      std::uint64_t{config.heads} * config.head_dim,
      std::uint64_t{config.index_heads} * config.index_head_dim,
      std::uint64_t{config.o_groups} * config.o_rank,
      std::uint64_t{config.routed_experts},
  });
  return rows * widest * f32_bytes + tap_dimensions_max * flow::packed_extent_bytes +
         flow::packed_text_prefix_bytes + tap_name_bytes_max;
}

std::uint64_t tap_names_bytes_max() noexcept {
  return taps_per_step_max * (flow::packed_text_prefix_bytes + tap_name_bytes_max);
}

std::uint64_t sampling_bytes_max(std::uint64_t requests) noexcept {
  return requests *
         (flow::packed_sampling_bytes + flow::token_biases_max * flow::packed_bias_bytes);
}

std::uint64_t prefix_bytes_max(std::uint64_t requests) noexcept {
  return requests * (flow::packed_prefix_use_bytes + flow::packed_replay_bytes) +
         flow::prefixes_dropped_max * flow::packed_prefix_bytes;
}

std::uint64_t replay_bytes_max(std::uint64_t requests) noexcept {
  return requests * std::max(flow::packed_replay_bytes, flow::packed_kept_bytes);
}

std::uint64_t replay_bytes_of(const flow::step_table& table) noexcept {
  const auto replaying = std::ranges::count_if(
      table.spans, [](const flow::row_span& span) { return span.stored > 0; });
  return static_cast<std::uint64_t>(replaying) * flow::packed_replay_bytes;
}

std::uint64_t extra_bytes_of(const flow::step_table& table) noexcept {
  std::uint64_t bytes = 0;
  for (const std::string& name : table.taps) bytes += flow::packed_text_prefix_bytes + name.size();
  for (const flow::request_sampling& entry : table.sampling)
    bytes += flow::packed_sampling_bytes + entry.options.bias.size() * flow::packed_bias_bytes;
  return bytes + table.prefixes.size() * flow::packed_prefix_use_bytes +
         table.dropped.size() * flow::packed_prefix_bytes;
}

}  // namespace cedar::topology
