// One message of every kind, filled with distinct values, and the way a frame crosses a network.
#pragma once

#include <cstring>

#include "runtime/flow/frame.hpp"
#include "runtime/flow/messages.hpp"

namespace cedar::wire::test {

inline kernels::buffer pattern(std::size_t bytes, unsigned salt) {
  kernels::buffer memory(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    memory.data()[i] = static_cast<std::byte>((i * 31 + salt) & 0xff);
  }
  return memory;
}

inline std::vector<flow::row_span> sample_spans() {
  return {{request_id{0x1122334455667788}, 7, 3, 2, 9, 5, 8, flow::tap_use::none},
          {request_id{9}, 0, 2, 0, 0, 0, 0, flow::tap_use::window}};
}

inline flow::step_table sample_step_table() {
  flow::step_table table{
      step_id{11}, epoch_id{2},          sample_spans(),      {5, 6, 7, -1, 2147483647},
      {1, 2, 3},   /*want_logits*/ true, {"L3.attn.out", ""}, {}};
  table.sampling = {{request_id{9}, 2, {}}, {request_id{0x1122334455667788}, 9, {}}};
  table.sampling[1].options = {0.7F,
                               40,
                               0.9F,
                               0.05F,
                               1.1F,
                               0.25F,
                               -0.5F,
                               ~std::uint64_t{0} - 4,
                               3,
                               21,
                               {{17, -100.0F}, {2, 1.5F}}};
  table.prefixes = {{request_id{9}, prefix_id{0x99aabbccddeeff00}}};
  table.dropped = {prefix_id{4}, prefix_id{~std::uint64_t{0}}};
  return table;
}

inline flow::row_block sample_row_block(flow::row_kind kind) {
  const std::uint32_t rows = kind == flow::row_kind::head_input ? 3 : 5;
  return {kind, step_id{12},    epoch_id{2}, 4,  6,
          8,    sample_spans(), rows,        17, flow::freeze(pattern(rows * 17, 1))};
}

inline flow::proposal sample_proposal(bool with_logits) {
  flow::proposal out{step_id{13},
                     epoch_id{3},
                     {{request_id{1}, 4, 77, -0.5F}, {request_id{2}, 9, -3, -1e-30F}},
                     nullptr};
  if (with_logits) out.logits = flow::freeze(pattern(2 * 6 * sizeof(float), 2));
  return out;
}

inline flow::verdict sample_verdict() {
  return {step_id{14},
          epoch_id{3},
          {{request_id{1}, 5, false}, {request_id{2}, 10, true, prefix_id{0x99aabbccddeeff00}, 8}}};
}

inline flow::draft_orders sample_draft_orders() {
  return {step_id{14},
          epoch_id{3},
          {{request_id{1}, 77, 5, 3}, {request_id{0x1122334455667788}, -1, 9, 5}}};
}

inline flow::draft_answers sample_draft_answers() {
  return {step_id{14},
          epoch_id{3},
          {{request_id{1}, 5, {7, 2147483647, -3}, {0.0F, 1.0F, 0.25F}},
           {request_id{2}, 9, {}, {}},
           {request_id{0x1122334455667788}, 9, {4}, {}}}};
}

/// 2 x 3 patches of 2 x 2 pixels.
inline flow::step_image sample_image() {
  flow::step_image out{step_id{14}, epoch_id{3}, {request_id{0x1122334455667788}, {}}};
  out.image.image = {9, 4, 2, 3, flow::freeze(pattern(std::size_t{3} * 2 * 3 * 4, 4)), {}};
  return out;
}

inline flow::tap sample_tap() {
  return {step_id{15},
          epoch_id{3},
          false,
          "L3.attn.out",
          kernels::dtype::bf16,
          {2, 3, 4},
          flow::freeze(pattern(48, 3))};
}

inline flow::tap sample_end_of_taps() {
  return {step_id{15}, epoch_id{3}, true, {}, kernels::dtype::f32, {0}, nullptr};
}

/// What a network does: the payload lands, in one piece, in a buffer of the receiver.
inline flow::received_frame cross(const flow::frame& frame) {
  flow::received_frame out{frame.header, kernels::buffer(frame.payload_bytes())};
  const auto tensor = flow::bytes_of(frame.tensor);
  if (!tensor.empty()) std::memcpy(out.payload.data(), tensor.data(), tensor.size());
  if (!frame.lists.empty()) {
    std::memcpy(out.payload.data() + tensor.size(), frame.lists.data(), frame.lists.size());
  }
  return out;
}

}  // namespace cedar::wire::test
