// Checks of everything in a document that is not about layers: names that must exist, words that
// must be known, values that must fit the model and each other. Each function reports all it finds.
#pragma once

#include <optional>
#include <vector>

#include "runtime/model/config.hpp"
#include "topology/document/document.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology::internal {

std::optional<device_kind> device_kind_of(std::string_view word) noexcept;
std::optional<transport_kind> transport_kind_of(std::string_view word) noexcept;

/// Position of `name` in nodes or devices.
std::optional<std::uint32_t> index_of_node(const document& topology, std::string_view name);
std::optional<std::uint32_t> index_of_device(const document& topology, std::string_view name);

/// Nodes, devices and units refer to what exists; every node has a unit; stage names are unique.
void check_names(const document& topology, std::vector<diagnostic>& out);
/// Every node has a checkpoint.
void check_model(const document& topology, std::vector<diagnostic>& out);
/// Addresses are loopback unless the file says otherwise and names a secret.
void check_addresses(const document& topology, std::vector<diagnostic>& out);
/// Nodes that are started by a person, and where they find the client.
void check_joining(const document& topology, std::vector<diagnostic>& out);
void check_mode(const document& topology, std::vector<diagnostic>& out);
/// Limits fit the model and each other.
void check_limits(const document& topology, const model::model_config& config,
                  std::vector<diagnostic>& out);
/// Positions that KV of the model is given out in.
std::uint32_t kv_granule(const model::model_config& config);
void check_transport(const document& topology, std::vector<diagnostic>& out);
void check_deadlines(const document& topology, std::vector<diagnostic>& out);

}  // namespace cedar::topology::internal
