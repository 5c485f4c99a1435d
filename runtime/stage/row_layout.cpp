#include "runtime/stage/row_layout.hpp"

#include "kernels/base/check.hpp"
#include "runtime/model/compressor.hpp"
#include "runtime/model/engram.hpp"

namespace cedar::stage {

using flow::row_kind;
using kernels::bf16;

namespace {

struct plane_sizes {
  std::size_t streams = 0;
  std::size_t mixes = 0;
};

plane_sizes sizes_of(row_kind kind, const model::model_config& config) {
  if (kind == row_kind::embedded) return {config.width, 0};
  return {std::size_t{config.streams} * config.width, config.streams};
}

/// A position or a block, with its score.
constexpr std::size_t scored_bytes = sizeof(std::int32_t) + sizeof(bf16);

/// Of an index query: each head's packed vector and its weight.
std::size_t query_bytes(const model::model_config& config) {
  return config.index_heads *
         (kernels::entry_bytes(model::index_entry_format, config.index_head_dim) + sizeof(bf16));
}

template <class Planes, class Byte>
Planes cut_planes(Byte* memory, plane_sizes sizes, std::size_t rows) {
  using stream = std::remove_pointer_t<decltype(Planes{}.streams.data)>;
  using mix = std::remove_pointer_t<decltype(Planes{}.pre.data)>;
  using flag = typename decltype(Planes{}.image_rows)::element_type;
  Byte* pre = memory + rows * sizes.streams * sizeof(bf16);
  Byte* image = pre + rows * sizes.mixes * sizeof(float);
  return {{reinterpret_cast<stream*>(memory), rows, sizes.streams},
          {reinterpret_cast<mix*>(pre), rows, sizes.mixes},
          {reinterpret_cast<flag*>(image), rows}};
}

}  // namespace

std::uint32_t row_bytes(row_kind kind, const model::model_config& config) noexcept {
  const std::size_t width = std::size_t{config.width} * sizeof(bf16);
  std::size_t bytes = 0;
  switch (kind) {
    case row_kind::embedded:
      bytes = width + 1;
      break;
    case row_kind::activation:
      bytes = config.streams * (width + sizeof(float)) + 1;
      break;
    case row_kind::engram_rows:
      bytes = config.engram_columns() * model::engram_row_bytes(config);
      break;
    case row_kind::head_input:
    case row_kind::draft_taps:
    case row_kind::image_rows:
      bytes = width;
      break;
    case row_kind::shared_kv:
    case row_kind::gathered:
      bytes = kernels::entry_bytes(model::global_entry_format, config.head_dim);
      break;
    case row_kind::index_keys:
      bytes = kernels::entry_bytes(model::index_entry_format, config.index_head_dim);
      break;
    case row_kind::selection:
    case row_kind::gather_request:
      bytes = config.index_topk * sizeof(std::int32_t);
      break;
    case row_kind::candidates:
      bytes = config.candidate_blocks * sizeof(std::int32_t);
      break;
    case row_kind::expert_rows:
      bytes = config.experts_per_token * (sizeof(std::int32_t) + sizeof(float)) + config.width +
              config.width / 32;
      break;
    case row_kind::expert_outputs:
      bytes = width;
      break;
    case row_kind::index_query:
      bytes = query_bytes(config);
      break;
    case row_kind::pool_query:
      bytes = query_bytes(config) + config.candidate_blocks * sizeof(std::int32_t);
      break;
    case row_kind::index_choice:
      bytes = config.index_topk * scored_bytes;
      break;
    case row_kind::pool_choice:
      bytes = (config.index_topk + config.candidate_blocks) * scored_bytes;
      break;
    case row_kind::engram_slots:
      bytes = sizeof(std::int32_t) + model::engram_row_bytes(config);
      break;
  }
  return static_cast<std::uint32_t>(bytes);
}

result<row_planes_view> view_planes(const flow::row_block& block,
                                    const model::model_config& config) {
  const bool fits =
      (block.kind == row_kind::embedded || block.kind == row_kind::activation) &&
      block.row_bytes == row_bytes(block.kind, config) &&
      flow::bytes_of(block.payload).size() >= std::size_t{block.rows_count} * block.row_bytes;
  if (!fits)
    return fail(errc::malformed, "step " + std::to_string(block.step.value) +
                                     ": a block of rows does not have the layout of this model");
  return cut_planes<row_planes_view>(flow::bytes_of(block.payload).data(),
                                     sizes_of(block.kind, config), block.rows_count);
}

row_planes_out planes_of(kernels::buffer& memory, row_kind kind, std::size_t rows,
                         const model::model_config& config) {
  CEDAR_REQUIRE(memory.bytes() == rows * row_bytes(kind, config), "buffer of another size");
  return cut_planes<row_planes_out>(memory.data(), sizes_of(kind, config), rows);
}

flow::row_block make_block(row_kind kind, const flow::step_table& table,
                           const model::model_config& config, kernels::buffer memory) {
  flow::row_block block;
  block.step = table.step;
  block.epoch = table.epoch;
  block.spans = table.spans;
  return answer_block(kind, block, config, std::move(memory));
}

flow::row_block answer_block(row_kind kind, const flow::row_block& request,
                             const model::model_config& config, kernels::buffer memory) {
  flow::row_block block = request;
  block.kind = kind;
  block.row_bytes = row_bytes(kind, config);
  block.rows_count = static_cast<std::uint32_t>(memory.bytes() / block.row_bytes);
  block.payload = block.rows_count == 0 ? nullptr : flow::freeze(std::move(memory));
  return block;
}

}  // namespace cedar::stage
