// Checks of `units.indexers`: shards of the index keys of layers that make some, none without use.
#pragma once

#include <vector>

#include "runtime/model/config.hpp"
#include "runtime/model/index_shard.hpp"
#include "topology/document/document.hpp"

namespace cedar::topology::internal {

/// In file order, which numbers them, and those of an owner as its parts.
std::vector<model::index_shard> shards_of(const document& topology,
                                          const model::model_config& config);

/// Reports owners that the model lacks, and shards that no request is long enough for.
void check_indexers(const document& topology, const model::model_config& config,
                    std::vector<diagnostic>& out);

}  // namespace cedar::topology::internal
