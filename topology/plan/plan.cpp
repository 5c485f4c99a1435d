#include "topology/plan/plan.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"
#include "runtime/model/schedule.hpp"

namespace cedar::topology {

namespace {

template <class Id, class Item>
const Item& item_at(const std::vector<Item>& items, Id id, const char* what) {
  CEDAR_REQUIRE(id.value < items.size(),
                "the plan has no " + std::string(what) + " " + std::to_string(id.value));
  return items[id.value];
}

/// Of the rows that a step needs, those of the shard.
std::uint64_t table_rows_of(const engram_role& role, const step_addresses& addresses) {
  const model::engram_shard& shard = role.shards.front();
  const auto found = addresses.find(shard.layer);
  if (found == addresses.end()) return 0;
  return static_cast<std::uint64_t>(
      std::ranges::count_if(found->second, [&](std::uint64_t row) { return shard.holds(row); }));
}

}  // namespace

std::string_view to_string(device_kind kind) noexcept {
  switch (kind) {
    case device_kind::cpu:
      return "cpu";
    case device_kind::cuda:
      return "cuda";
    case device_kind::reference:
      return "reference";
  }
  return "?";
}

std::string_view to_string(transport_kind kind) noexcept {
  switch (kind) {
    case transport_kind::ucx:
      return "ucx";
    case transport_kind::loopback:
      return "loopback";
  }
  return "?";
}

std::string_view to_string(edge_kind kind) noexcept {
  switch (kind) {
    case edge_kind::step_table:
      return "step_table";
    case edge_kind::embedded:
      return "embedded";
    case edge_kind::engram_rows:
      return "engram_rows";
    case edge_kind::activation:
      return "activation";
    case edge_kind::shared_kv:
      return "shared_kv";
    case edge_kind::index_keys:
      return "index_keys";
    case edge_kind::selection:
      return "selection";
    case edge_kind::candidates:
      return "candidates";
    case edge_kind::gather_request:
      return "gather_request";
    case edge_kind::gathered:
      return "gathered";
    case edge_kind::head_input:
      return "head_input";
    case edge_kind::proposal:
      return "proposal";
    case edge_kind::verdict:
      return "verdict";
    case edge_kind::tap:
      return "tap";
    case edge_kind::draft_taps:
      return "draft_taps";
    case edge_kind::draft_orders:
      return "draft_orders";
    case edge_kind::draft_answers:
      return "draft_answers";
    case edge_kind::image:
      return "image";
    case edge_kind::image_rows:
      return "image_rows";
    case edge_kind::expert_rows:
      return "expert_rows";
    case edge_kind::expert_outputs:
      return "expert_outputs";
    case edge_kind::index_query:
      return "index_query";
    case edge_kind::pool_query:
      return "pool_query";
    case edge_kind::index_choice:
      return "index_choice";
    case edge_kind::pool_choice:
      return "pool_choice";
    case edge_kind::engram_slots:
      return "engram_slots";
  }
  return "?";
}

bool is_request(edge_kind kind) noexcept {
  return kind == edge_kind::gather_request || kind == edge_kind::expert_rows ||
         kind == edge_kind::index_query || kind == edge_kind::pool_query;
}

bool is_reply(edge_kind kind) noexcept {
  return kind == edge_kind::gathered || kind == edge_kind::expert_outputs ||
         kind == edge_kind::index_choice || kind == edge_kind::pool_choice;
}

step_shape limits_plan::largest_step(const model::model_config& config) const noexcept {
  step_shape shape;
  shape.requests = requests;
  shape.rows = shape.decoder_rows = shape.wanted = rows_per_step;
  shape.earlier_ids = shape.requests * config.engram_lookback();
  // Every request may begin to be followed, with rows of earlier steps.
  shape.tapped = std::min(shape.requests, shape.rows) * tapped_rows_max(config);
  shape.drafts = {shape.requests, shape.requests * draft_tokens};
  shape.image_rows = config.vision.layers > 0 ? shape.rows : 0;
  return shape;
}

const node_plan& plan::operator[](node_id id) const {
  return item_at(nodes_, id, "node");
}
const device_plan& plan::operator[](device_id id) const {
  return item_at(devices_, id, "device");
}
const unit_plan& plan::operator[](unit_id id) const {
  return item_at(units_, id, "unit");
}
const edge_plan& plan::operator[](edge_id id) const {
  return item_at(edges_, id, "edge");
}

bool plan::reads_images() const noexcept {
  return std::ranges::any_of(
      units_, [](const unit_plan& unit) { return std::holds_alternative<vision_role>(unit.role); });
}

const node_plan* plan::find_node(std::string_view name) const noexcept {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                  [&](const node_plan& node) { return node.name == name; });
  return found == nodes_.end() ? nullptr : &*found;
}

const link_shape* plan::link(node_id from, node_id to) const noexcept {
  const auto found = std::find_if(links_.begin(), links_.end(), [&](const link_plan& link) {
    return link.from == from && link.to == to;
  });
  return found == links_.end() ? nullptr : &found->shape;
}

const model::index_shard* plan::shard_of(const edge_plan& edge) const {
  for (const unit_id end : {edge.producer, edge.consumer})
    if (const auto* indexer = std::get_if<indexer_role>(&(*this)[end].role))
      return edge.of_queries() || edge.kind == edge_kind::index_keys ? &indexer->shard : nullptr;
  return nullptr;
}

std::vector<edge_id> plan::edges_into(unit_id consumer) const {
  std::vector<edge_id> out;
  for (const edge_plan& edge : edges_) {
    if (edge.consumer == consumer) out.push_back(edge.id);
  }
  return out;
}

std::vector<edge_id> plan::edges_out_of(unit_id producer) const {
  std::vector<edge_id> out;
  for (const edge_plan& edge : edges_) {
    if (edge.producer == producer) out.push_back(edge.id);
  }
  return out;
}

flow::edge_contract plan::contract(edge_id edge, std::uint64_t fingerprint) const {
  const edge_plan& planned = (*this)[edge];
  return {planned.id, planned.name, fingerprint, planned.window_messages, planned.window_bytes};
}

std::uint64_t plan::expected_bytes(edge_id edge, const flow::step_table& table,
                                   const draft_counts& drafts, const step_routes& routes,
                                   const step_addresses& addresses) const {
  const edge_plan& planned = (*this)[edge];
  CEDAR_REQUIRE(planned.follows_tables(), "no table tells what passes " + planned.name);
  const model::schedule schedule(model_);
  step_shape shape = shape_of(table, model_);
  shape.drafts = drafts;
  if (planned.kind == edge_kind::image_rows && shape.image_rows == 0) return 0;
  if (planned.kind == edge_kind::draft_taps && shape.tapped == 0) return 0;
  const model::index_shard* const shard = shard_of(planned);
  if (planned.kind == edge_kind::shared_kv || planned.kind == edge_kind::index_keys)
    shape.entries = entries_of(table, schedule[planned.layer].ratio, shard);
  if (planned.kind == edge_kind::index_keys && shard != nullptr && shape.entries == 0) return 0;
  if (planned.kind == edge_kind::engram_slots)
    shape.table_rows =
        table_rows_of(std::get<engram_role>((*this)[planned.producer].role), addresses);
  const bool spans = planned.kind != edge_kind::proposal && planned.kind != edge_kind::verdict;
  const std::uint64_t replay = spans ? replay_bytes_of(table) : 0;
  if (planned.groups.empty()) {
    const bool diagnosed = planned.kind == edge_kind::proposal && table.want_logits;
    const message_size size = diagnosed ? proposal_size(model_, true) : planned.size;
    return size.bytes(shape) + replay +
           (planned.kind == edge_kind::step_table ? extra_bytes_of(table) : 0);
  }
  if (planned.follows_routes()) return routed_bytes(planned, shape, replay, routes);
  if (planned.of_queries()) return queried_bytes(planned, shape, replay, table);
  // Nothing is asked for a step that ends before the layers that would ask.
  const bool in_decoder = planned.layer >= schedule.decoder_begin();
  if (in_decoder && table.decoder_count() == 0) return 0;
  std::uint64_t bytes = 0;
  for (const std::uint32_t source : planned.groups) {
    shape.selected = selected_of(table, model_, schedule[source], in_decoder);
    bytes += planned.size.bytes(shape) + replay;
  }
  return bytes;
}

/// Layer by layer, of those that ask; `shape` is the step's without what routers choose.
std::uint64_t plan::routed_bytes(const edge_plan& edge, step_shape shape, std::uint64_t replay,
                                 const step_routes& routes) const {
  const unit_id holder = edge.kind == edge_kind::expert_rows ? edge.consumer : edge.producer;
  const model::expert_slice& slice = std::get<experts_role>((*this)[holder].role).slice;
  std::uint64_t bytes = 0;
  for (const std::uint32_t layer : edge.groups) {
    const auto found = routes.find(layer);
    if (found == routes.end()) continue;
    shape.routed_rows = shape.choices = 0;
    for (const std::vector<std::uint32_t>& row : found->second) {
      const auto chosen = std::ranges::count_if(
          row, [&](std::uint32_t expert) { return slice.holds(layer, expert); });
      shape.routed_rows += chosen > 0 ? 1 : 0;
      shape.choices += static_cast<std::uint64_t>(chosen);
    }
    if (shape.routed_rows > 0) bytes += edge.size.bytes(shape) + replay;
  }
  return bytes;
}

/// Source by source, of those that ask.
std::uint64_t plan::queried_bytes(const edge_plan& edge, step_shape shape, std::uint64_t replay,
                                  const flow::step_table& table) const {
  const model::schedule schedule(model_);
  std::uint64_t bytes = 0;
  for (const std::uint32_t source : edge.groups) {
    shape.asking_rows = asking_of(table, schedule[source].ratio, *shard_of(edge),
                                  source >= schedule.decoder_begin());
    if (shape.asking_rows > 0) bytes += edge.size.bytes(shape) + replay;
  }
  return bytes;
}

traffic_bound plan::traffic(node_id from, node_id to) const {
  traffic_bound bound;
  for (const edge_plan& edge : edges_) {
    if (edge.from != from || edge.to != to) continue;
    bound.messages += edge.window_messages;
    bound.bytes += edge.window_bytes;
    bound.message_bytes = std::max(bound.message_bytes, edge.message_bytes_max);
  }
  return bound;
}

}  // namespace cedar::topology
