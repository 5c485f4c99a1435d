// Distinct types for the things that are numbered, so that a step is never mistaken for a request.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace cedar {

/// An integer with a meaning. Ids of different tags do not convert into each other.
template <class Tag, class Integer>
struct id {
  Integer value{};

  friend constexpr auto operator<=>(const id&, const id&) = default;
};

using request_id = id<struct request_tag, std::uint64_t>;
/// Steps are numbered from 1 by the scheduler, without gaps.
using step_id = id<struct step_tag, std::uint64_t>;
/// Raised whenever state is rolled back; a message of an older epoch is dropped.
using epoch_id = id<struct epoch_tag, std::uint32_t>;
/// Index of an edge in the plan.
using edge_id = id<struct edge_tag, std::uint32_t>;
/// Index of a node (a process) in the plan.
using node_id = id<struct node_tag, std::uint32_t>;
/// Index of a backbone layer, from 0.
using layer_id = id<struct layer_tag, std::uint32_t>;
/// Global KV that is kept after its request, for requests that begin alike; numbered from 1 by the
/// scheduler. 0: none.
using prefix_id = id<struct prefix_tag, std::uint64_t>;
/// A token of the vocabulary.
using token_id = std::int32_t;

}  // namespace cedar

template <class Tag, class Integer>
struct std::hash<cedar::id<Tag, Integer>> {
  std::size_t operator()(const cedar::id<Tag, Integer>& key) const noexcept {
    return std::hash<Integer>{}(key.value);
  }
};
