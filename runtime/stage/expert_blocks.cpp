#include "runtime/stage/expert_blocks.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

using flow::row_kind;
using kernels::matrix_view;

namespace {

constexpr std::int32_t no_expert = -1;

/// Of `memory` with `rows` rows, one plane after another.
template <class Planes, class Byte>
Planes cut_expert_planes(Byte* memory, std::size_t rows, const model::model_config& config) {
  using id = std::remove_pointer_t<decltype(Planes{}.experts.data)>;
  using weight = std::remove_pointer_t<decltype(Planes{}.weights.data)>;
  using code = std::remove_pointer_t<decltype(Planes{}.codes.data)>;
  const std::size_t k = config.experts_per_token;
  Byte* weights = memory + rows * k * sizeof(std::int32_t);
  Byte* codes = weights + rows * k * sizeof(float);
  Byte* scales = codes + rows * config.width;
  return {{reinterpret_cast<id*>(memory), rows, k},
          {reinterpret_cast<weight*>(weights), rows, k},
          {reinterpret_cast<code*>(codes), rows, config.width},
          {reinterpret_cast<code*>(scales), rows, config.width / 32}};
}

/// Of `row`, the slots of `opened` whose experts the slice holds, by ascending expert.
std::span<std::size_t> slots_of(const model::opened_moe& opened, std::size_t row,
                                std::uint32_t layer, const model::expert_slice& slice,
                                std::vector<std::size_t>& slots) {
  slots.clear();
  const auto chosen = opened.experts.row(row);
  for (std::size_t slot = 0; slot < chosen.size(); ++slot)
    if (slice.holds(layer, static_cast<std::uint32_t>(chosen[slot]))) slots.push_back(slot);
  std::ranges::sort(slots, {}, [&](std::size_t slot) { return chosen[slot]; });
  return slots;
}

std::string text_of_experts(const flow::row_block& block) {
  return "step " + std::to_string(block.step.value) + ": " +
         std::string(flow::kind_of(flow::message(block))) + " of layer " +
         std::to_string(block.layer);
}

/// Ids ascend and are the slice's, one at least; weights are numbers.
bool row_is_sound(const expert_planes_view& planes, std::size_t row,
                  const model::expert_slice& slice) {
  std::int32_t last = no_expert;
  bool over = false;
  for (std::size_t slot = 0; slot < planes.experts.cols; ++slot) {
    const std::int32_t expert = planes.experts.row(row)[slot];
    if (expert == no_expert) {
      over = true;
      continue;
    }
    if (over || expert <= last ||
        !std::ranges::binary_search(slice.experts, static_cast<std::uint32_t>(expert)) ||
        !std::isfinite(planes.weights.row(row)[slot]))
      return false;
    last = expert;
  }
  return last != no_expert;
}

}  // namespace

std::optional<flow::row_block> make_expert_rows(const model::model_config& config,
                                                const flow::step_table& table, std::uint32_t layer,
                                                std::uint32_t reader,
                                                const model::expert_slice& slice,
                                                const model::opened_moe& opened,
                                                const model::quantized_rows& x) {
  std::vector<std::size_t> slots;
  std::size_t count = 0;
  for (std::size_t row = 0; row < opened.experts.rows; ++row)
    count += slots_of(opened, row, layer, slice, slots).empty() ? 0 : 1;
  if (count == 0) return std::nullopt;
  kernels::buffer memory(count * row_bytes(row_kind::expert_rows, config));
  const auto planes = cut_expert_planes<expert_planes<std::int32_t, float, std::uint8_t>>(
      memory.data(), count, config);
  std::size_t to = 0;
  for (std::size_t row = 0; row < opened.experts.rows; ++row) {
    if (slots_of(opened, row, layer, slice, slots).empty()) continue;
    std::ranges::fill(planes.experts.row(to), no_expert);
    std::ranges::fill(planes.weights.row(to), 0.0F);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      planes.experts.row(to)[i] = opened.experts.row(row)[slots[i]];
      planes.weights.row(to)[i] = opened.weights.row(row)[slots[i]];
    }
    std::ranges::copy(x.codes.row(row), planes.codes.row_data(to));
    std::ranges::copy(x.scales.row(row), planes.scales.row_data(to));
    ++to;
  }
  flow::row_block block = make_block(row_kind::expert_rows, table, config, std::move(memory));
  block.layer = layer;
  block.reader = reader;
  block.slice = slice.number;
  return block;
}

result<expert_planes_view> expert_rows_of(const flow::row_block& block,
                                          const model::model_config& config,
                                          const model::expert_slice& slice) {
  if (block.kind != row_kind::expert_rows || block.slice != slice.number ||
      !slice.holds(block.layer))
    return fail(errc::malformed, text_of_experts(block) + ": this slice does not hold them");
  if (block.row_bytes != row_bytes(block.kind, config) ||
      flow::bytes_of(block.payload).size() < std::size_t{block.rows_count} * block.row_bytes)
    return fail(errc::malformed, text_of_experts(block) + ": not the layout of this model");
  const auto planes = cut_expert_planes<expert_planes_view>(flow::bytes_of(block.payload).data(),
                                                            block.rows_count, config);
  for (std::size_t row = 0; row < planes.experts.rows; ++row)
    if (!row_is_sound(planes, row, slice))
      return fail(errc::malformed, text_of_experts(block) + ": row " + std::to_string(row) +
                                       " does not choose experts of this slice");
  return planes;
}

void awaited_experts::ask(const flow::step_table& table, std::uint32_t layer,
                          const model::opened_moe& opened, const model::quantized_rows& x,
                          std::vector<flow::row_block>& out) {
  for (const model::expert_slice& slice : slices_) {
    if (!slice.holds(layer)) continue;
    auto request = make_expert_rows(config_, table, layer, reader_, slice, opened, x);
    if (!request) continue;
    asked_.push_back({&slice, *request});
    asked_.back().request.payload = nullptr;
    out.push_back(std::move(*request));
  }
}

result<void> awaited_experts::take(const flow::row_block& answer, const model::opened_moe& opened) {
  const auto asked = std::ranges::find_if(
      asked_, [&](const question& one) { return one.request.slice == answer.slice; });
  std::size_t count = 0;
  if (asked != asked_.end())
    for (const std::uint32_t expert : asked->slice->experts) count += opened.groups.size_of(expert);
  const std::size_t bytes = row_bytes(row_kind::expert_outputs, config_);
  const bool fits = asked != asked_.end() && answer.kind == row_kind::expert_outputs &&
                    answer.step == asked->request.step && answer.layer == asked->request.layer &&
                    answer.reader == reader_ && answer.spans == asked->request.spans &&
                    answer.rows_count == count && answer.row_bytes == bytes &&
                    flow::bytes_of(answer.payload).size() >= count * bytes;
  if (!fits)
    return fail(errc::malformed, text_of_experts(answer) + " from slice " +
                                     std::to_string(answer.slice) + " are not those asked for");
  const matrix_view<const kernels::bf16> outputs{
      reinterpret_cast<const kernels::bf16*>(flow::bytes_of(answer.payload).data()), count,
      config_.width};
  std::size_t first = 0;
  for (const std::uint32_t expert : asked->slice->experts) {
    const std::size_t rows = opened.groups.size_of(expert);
    model::put_outputs(opened, expert, outputs.rows_from(first, rows));
    first += rows;
  }
  payloads_.push_back(answer.payload);
  asked_.erase(asked);
  return {};
}

}  // namespace cedar::stage
