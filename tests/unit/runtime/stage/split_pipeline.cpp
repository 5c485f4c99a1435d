#include "tests/unit/runtime/stage/split_pipeline.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <functional>

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

std::vector<model::index_shard> shards_of(const std::map<std::uint32_t, std::uint32_t>& parts) {
  std::vector<model::index_shard> out;
  for (const auto& [owner, count] : parts)
    for (std::uint32_t part = 0; part < count; ++part)
      out.push_back({static_cast<std::uint32_t>(out.size()), owner, part, count,
                     model::shard_block_entries(tiny_model().config())});
  return out;
}

split_pipeline::split_pipeline(const placement& ranges,
                               const std::set<std::uint32_t>& gather_owners,
                               const std::vector<model::expert_slice>& experts,
                               const std::map<std::uint32_t, std::uint32_t>& indexers_of)
    : embedding_(value_of(tiny_model().make_embedding())),
      engram_(value_of(tiny_model().make_engram())),
      head_(value_of(tiny_model().make_head(cpu_backend()))) {
  const auto& config = tiny_model().config();
  const auto& schedule = tiny_model().schedule();
  const auto shards = shards_of(indexers_of);
  for (const auto& [owner, parts] : indexers_of) sharded_.insert(owner);
  std::vector<model::shared_state> imports;
  for (const auto& [first, last] : ranges)
    imports.push_back(model::shared_needs(schedule, config, first, last, gather_owners, sharded_));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto [first, last] = ranges[i];
    model::shared_state exports;
    for (std::size_t later = i + 1; later < ranges.size(); ++later)
      exports = model::merged(exports, model::made_by(imports[later], first, last));
    stage::layer_stage_options options{first, last, 4, 256, imports[i], exports};
    options.experts_elsewhere = experts;
    options.indexers = shards;
    stages.push_back(value_of(tiny_model().make_layers(cpu_backend(), options)));
  }
  for (const model::expert_slice& slice : experts)
    slices.push_back(value_of(tiny_model().make_experts(cpu_backend(), slice)));
  for (const model::index_shard& shard : shards)
    indexers.push_back(
        stage::make_indexer_unit(tiny_model().make_indexer(cpu_backend(), {shard, 4, 256}), 2));
}

flow::row_block split_pipeline::answer(const flow::row_block& request) {
  if (request.kind == row_kind::expert_rows)
    return value_of(slices[request.slice]->answer(request));
  if (request.kind == row_kind::index_query || request.kind == row_kind::pool_query) {
    auto answered = value_of(indexers[request.slice]->take(request));
    BOOST_REQUIRE_EQUAL(answered.messages.size(), 1U);
    return std::get<flow::row_block>(answered.messages[0]);
  }
  const auto owner = std::ranges::find_if(stages, [&](const auto& other) {
    return request.layer >= other->first_layer() && request.layer <= other->last_layer();
  });
  return value_of((*owner)->answer(request));
}

split_pipeline::blocks split_pipeline::finish(stage::layer_stage& stage, blocks made) {
  const auto asks = [](const flow::row_block& block) { return is_request(block.kind); };
  while (stage.suspended()) {
    feed(made);
    const auto requests = std::ranges::stable_partition(made, std::not_fn(asks));
    const blocks asked(requests.begin(), requests.end());
    made.erase(requests.begin(), requests.end());
    if (stage.can_go_on()) std::ranges::move(value_of(stage.go_on({})), std::back_inserter(made));
    // Answers come in any order: here the last one first.
    for (auto request = asked.rbegin(); request != asked.rend(); ++request) {
      const flow::row_block got = answer(*request);
      for (const flow::row_block* block : {&*request, &got}) {
        ++traffic[block->kind].first;
        traffic[block->kind].second += flow::bytes_of(block->payload).size();
      }
      std::ranges::move(value_of(stage.resume(got, {})), std::back_inserter(made));
    }
  }
  feed(made);
  return made;
}

void split_pipeline::feed(blocks& made) {
  std::erase_if(made, [&](const flow::row_block& block) {
    const bool to_indexer = block.kind == row_kind::index_keys && sharded_.contains(block.layer);
    if (to_indexer) {
      ++traffic[block.kind].first;
      traffic[block.kind].second += flow::bytes_of(block.payload).size();
      BOOST_TEST(value_of(indexers[block.slice]->take(block)).messages.empty());
    }
    return to_indexer;
  });
}

std::vector<std::vector<float>> split_pipeline::run(const flow::step_table& table) {
  const auto engram = value_of(engram_.run(table));
  std::optional<flow::row_block> rows = value_of(embedding_.run(table));
  for (auto& indexer : indexers) value_of(indexer->take(table));
  std::vector<flow::row_block> shared;
  for (auto& stage : stages) {
    stage::joined_step step{table, rows, {}, {}, {}};
    for (const std::uint32_t layer : stage->engram_layers())
      step.engram.push_back(*std::ranges::find(engram, layer, &flow::row_block::layer));
    for (const stage::shared_input& input : stage->shared_inputs())
      step.shared.push_back(*std::ranges::find_if(shared, [&](const flow::row_block& block) {
        return block.kind == input.kind && block.layer == input.layer;
      }));
    blocks made = finish(*stage, value_of(stage->begin(std::move(step), {})));
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
  for (auto& indexer : indexers) value_of(indexer->take(verdict));
}

}  // namespace cedar::test
