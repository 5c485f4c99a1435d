// Who may include whom. The table is the architecture: changing it is a decision, so give the
// reason here.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cedar::architecture {

/// A component (a folder) and the components it names directly; it may include all that these
/// reach.
using layer_table = std::map<std::string, std::set<std::string>>;

/// The table of this repository.
const layer_table& layers();

/// The component that a path from the repository root belongs to: the longest entry of `table` that
/// is a folder above it.
std::optional<std::string> component_of(const std::string& path, const layer_table& table);

/// Everything that `component` may include, itself included.
std::set<std::string> reachable(const std::string& component, const layer_table& table);

/// Components that lie on a cycle of the table; empty in a sound one.
std::vector<std::string> cyclic(const layer_table& table);

}  // namespace cedar::architecture
