#include "topology/plan/internal/link_checks.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "topology/document/nearest.hpp"

namespace cedar::topology::internal {

void check_links(const document& topology, std::vector<diagnostic>& out) {
  if (topology.strict_links.value && topology.links.empty())
    out.push_back(topology.mistake(topology.strict_links.where,
                                   "'strict_links' is true, but 'links' claims nothing",
                                   "write links: [{between: [NODE, NODE], latency_ms: 20}]"));
  std::vector<std::string> names;
  for (const node_entry& node : topology.nodes) names.push_back(node.name.value);
  std::map<std::pair<std::string, std::string>, std::uint32_t> lines;
  for (const link_entry& link : topology.links) {
    // Ends that the file lacks, or that could not be read, have been reported.
    if (link.from.value.empty() || link.to.value.empty()) continue;
    for (const located<std::string>* end : {&link.from, &link.to})
      if (!names.empty() && std::find(names.begin(), names.end(), end->value) == names.end())
        out.push_back(topology.mistake(end->where, "there is no node " + in_quotes(end->value),
                                       spelling_hint(end->value, names)));
    const std::string& from = link.from.value;
    const std::string& to = link.to.value;
    if (from == to) {
      out.push_back(topology.mistake(link.to.where,
                                     "a link leads from node " + in_quotes(from) + " to itself",
                                     "name two nodes"));
      continue;
    }
    const auto note = [&](const std::string& a, const std::string& b) {
      const auto [earlier, first] = lines.emplace(std::pair(a, b), link.where.line);
      if (first) return true;
      out.push_back(topology.mistake(link.where,
                                     "the link from " + in_quotes(a) + " to " + in_quotes(b) +
                                         " is described twice; the first is in line " +
                                         std::to_string(earlier->second),
                                     "remove one of them"));
      return false;
    };
    if (note(from, to) && link.both_ways) note(to, from);
  }
}

}  // namespace cedar::topology::internal
