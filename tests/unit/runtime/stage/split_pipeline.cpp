#include "tests/unit/runtime/stage/split_pipeline.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <deque>

#include "runtime/model/sharing.hpp"

namespace cedar::test {

using flow::row_kind;

namespace {

template <class T>
T value_of(result<T> made) {
  BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? std::string() : made.error().message));
  return std::move(*made);
}

}  // namespace

split_pipeline::split_pipeline(const placement& ranges,
                               const std::set<std::uint32_t>& gather_owners)
    : embedding_(value_of(tiny_model().make_embedding())),
      engram_(value_of(tiny_model().make_engram())),
      head_(value_of(tiny_model().make_head(cpu_backend()))) {
  const auto& config = tiny_model().config();
  const auto& schedule = tiny_model().schedule();
  std::vector<model::shared_state> imports;
  for (const auto& [first, last] : ranges)
    imports.push_back(model::shared_needs(schedule, config, first, last, gather_owners));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto [first, last] = ranges[i];
    model::shared_state exports;
    for (std::size_t later = i + 1; later < ranges.size(); ++later)
      exports = model::merged(exports, model::made_by(imports[later], first, last));
    stages.push_back(value_of(
        tiny_model().make_layers(cpu_backend(), {first, last, 4, 256, imports[i], exports})));
  }
}

std::vector<std::vector<float>> split_pipeline::run(const flow::step_table& table) {
  const auto engram = value_of(engram_.run(table));
  std::optional<flow::row_block> rows = value_of(embedding_.run(table));
  std::vector<flow::row_block> shared;
  for (auto& stage : stages) {
    stage::joined_step step{table, rows, {}, {}, {}};
    for (const std::uint32_t layer : stage->engram_layers())
      step.engram.push_back(*std::ranges::find(engram, layer, &flow::row_block::layer));
    for (const stage::shared_input& input : stage->shared_inputs())
      step.shared.push_back(*std::ranges::find_if(shared, [&](const flow::row_block& block) {
        return block.kind == input.kind && block.layer == input.layer;
      }));
    auto made = value_of(stage->begin(std::move(step), {}));
    while (made.back().kind == row_kind::gather_request) {
      const flow::row_block request = made.back();
      made.pop_back();
      const auto owner = std::ranges::find_if(stages, [&](const auto& other) {
        return request.layer >= other->first_layer() && request.layer <= other->last_layer();
      });
      const flow::row_block answer = value_of((*owner)->answer(request));
      for (const flow::row_block* block : {&request, &answer}) {
        ++traffic[block->kind].first;
        traffic[block->kind].second += flow::bytes_of(block->payload).size();
      }
      auto rest = value_of(stage->resume(answer, {}));
      std::ranges::move(rest, std::back_inserter(made));
    }
    rows = std::move(made.back());
    made.pop_back();
    for (flow::row_block& block : made) {
      ++traffic[block.kind].first;
      traffic[block.kind].second += flow::bytes_of(block.payload).size();
      shared.push_back(std::move(block));
    }
  }
  const auto proposal = value_of(head_->run(table, *rows, {}));
  const auto* values = reinterpret_cast<const float*>(flow::bytes_of(proposal.logits).data());
  const std::size_t vocabulary = tiny_model().config().vocabulary;
  std::vector<std::vector<float>> logits;
  for (std::size_t row = 0; row < proposal.tokens.size(); ++row)
    logits.emplace_back(values + row * vocabulary, values + (row + 1) * vocabulary);
  return logits;
}

void split_pipeline::apply(const flow::verdict& verdict) {
  for (auto& stage : stages) BOOST_REQUIRE(stage->apply(verdict).has_value());
}

}  // namespace cedar::test
