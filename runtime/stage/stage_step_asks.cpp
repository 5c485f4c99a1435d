// What a step asks of other units on its way, and what it makes of their answers.
#include <algorithm>

#include "runtime/stage/row_layout.hpp"
#include "runtime/stage/shared_blocks.hpp"
#include "runtime/stage/stage_step.hpp"

namespace cedar::stage {

using flow::row_kind;

bool stage_step::needs_gather() const {
  const model::layer_schedule& layer = parts_.schedule[layer_];
  return layer.owner && std::ranges::binary_search(parts_.imports.gathered, *layer.owner) &&
         !(selections_.gathered && selections_.gathered->source == *layer.index_source);
}

void stage_step::request_entries(std::vector<flow::row_block>& out) {
  const std::uint32_t owner = *parts_.schedule[layer_].owner;
  out.push_back(make_selection_block(row_kind::gather_request, {parts_.config, parts_.schedule},
                                     table(), owner, *half_->chosen));
  out.back().reader = parts_.first_layer;
  waits_for_ = owner;
}

result<void> stage_step::give(const flow::row_block& answer) {
  if (answer.kind == row_kind::expert_outputs && moe_) return awaited_experts_.take(answer, *moe_);
  if (awaited_choices_.any()) return awaited_choices_.take(answer);
  if (waits_for_) return give_entries(answer);
  return fail(errc::malformed, "step " + std::to_string(table().step.value) + ": " +
                                   std::string(flow::kind_of(flow::message(answer))) +
                                   " of layer " + std::to_string(answer.layer) +
                                   " without request");
}

result<void> stage_step::give_entries(const flow::row_block& gathered) {
  gathered_entries entries;
  entries.source = *parts_.schedule[layer_].index_source;
  entries.payload = gathered.payload;
  entries.entry_bytes = row_bytes(row_kind::gathered, parts_.config);
  std::size_t count = 0;
  for (const auto& chosen : *half_->chosen) {
    entries.first.push_back(count);
    count += chosen.size();
  }
  const bool fits = gathered.kind == row_kind::gathered && gathered.step == table().step &&
                    gathered.layer == *waits_for_ && gathered.reader == parts_.first_layer &&
                    gathered.spans == table().spans && gathered.rows_count == count &&
                    gathered.row_bytes == entries.entry_bytes &&
                    flow::bytes_of(gathered.payload).size() >= count * entries.entry_bytes;
  if (!fits)
    return fail(errc::malformed, "step " + std::to_string(table().step.value) +
                                     ": gathered entries of layer " +
                                     std::to_string(gathered.layer) + " are not those asked for");
  selections_.gathered = std::move(entries);
  waits_for_.reset();
  return {};
}

void stage_step::open_moe(const model::taps& probes, std::vector<flow::row_block>& out) {
  moe_scope_.emplace(scratch_);
  moe_ = runner().open_moe(context(probes), overrides_, moe_frame_);
  experts_here_done_ = false;
  awaited_experts_.ask(table(), layer_, *moe_, moe_frame_.quantized, out);
}

}  // namespace cedar::stage
