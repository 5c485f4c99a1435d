#include "topology/plan/message_size.hpp"

#include <algorithm>

#include "runtime/flow/packed_sizes.hpp"

namespace cedar::topology {

namespace {

constexpr std::uint64_t bf16_bytes = 2;
constexpr std::uint64_t f32_bytes = 4;
constexpr std::uint64_t flag_bytes = 1;
// Engram tables: one E8M0 scale for 32 E4M3 codes.
constexpr std::uint64_t codes_per_scale = 32;
constexpr std::uint64_t tap_dimensions_max = 4;

}  // namespace

message_size step_table_size(const model::model_config& config) noexcept {
  return {
      .per_request = flow::packed_span_bytes + config.engram_lookback() * flow::packed_token_bytes,
      .per_row = flow::packed_token_bytes};
}

message_size embedded_size(const model::model_config& config) noexcept {
  return {.per_request = flow::packed_span_bytes,
          .per_row = config.width * bf16_bytes + flag_bytes};
}

message_size activation_size(const model::model_config& config) noexcept {
  const std::uint64_t streams = config.streams;
  return {.per_request = flow::packed_span_bytes,
          .per_row = streams * config.width * bf16_bytes + streams * f32_bytes + flag_bytes};
}

message_size engram_rows_size(const model::model_config& config) noexcept {
  const std::uint64_t scales = (config.engram.head_dim + codes_per_scale - 1) / codes_per_scale;
  return {.per_request = flow::packed_span_bytes,
          .per_row = config.engram_columns() * (config.engram.head_dim + scales)};
}

message_size head_input_size(const model::model_config& config) noexcept {
  return {.per_request = flow::packed_span_bytes, .per_wanted = config.width * bf16_bytes};
}

message_size proposal_size(const model::model_config& config, bool whole_logits) noexcept {
  return {.per_wanted = flow::packed_proposed_token_bytes +
                        (whole_logits ? config.vocabulary * f32_bytes : 0)};
}

message_size verdict_size() noexcept {
  return {.per_request = flow::packed_commitment_bytes};
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

}  // namespace cedar::topology
