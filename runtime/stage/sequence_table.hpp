// The requests that a holder of state knows, and the prefixes that it keeps.
//
// 1. A step's rows of a request continue where its written rows end, in one span a request.
// 2. State moves by verdicts: apply() commits, takes back, frees, or keeps.
// 3. A step that fails after check() is taken back: states that it made go, others are cut.
#pragma once

#include <functional>
#include <unordered_map>

#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/stage/sequence_state.hpp"

namespace cedar::stage {

struct sequence_bounds {
  std::uint32_t requests_max = 1;
  std::uint32_t context_max = 0;  ///< positions of one request
  std::uint32_t granule = 1;  ///< positions that fill whole pages at every owner
};

class sequence_table {
 public:
  sequence_table(const sequence_bounds& bounds, std::function<sequence_state()> make)
      : bounds_(bounds), make_(std::move(make)) {}

  /// Whether the rows of a step can follow. Errors: malformed (a request twice), capacity (too many
  /// requests, beyond the context), mismatch (rows that do not continue the request's state, a
  /// prefix that is unknown here or shorter).
  result<void> check(const flow::step_table& table) const;
  /// The request of a checked span, made if it begins, with the pages of its rows, which count as
  /// written. Error capacity: no free page.
  result<sequence_state*> open(const flow::step_table& table, const flow::row_span& span);
  /// After check(): the step has not been.
  void take_back(const flow::step_table& table);
  /// Frees the prefixes that a step drops.
  void drop(std::span<const prefix_id> prefixes);

  /// Unknown requests are ignored: their step may have failed earlier. Error mismatch: it keeps
  /// rows that were never written.
  result<void> apply(const flow::verdict& verdict);

  /// Null: unknown.
  sequence_state* find(request_id request);

  void clear() {
    sequences_.clear();
    prefixes_.clear();
    kept_bytes_ = 0;
  }
  std::size_t sequences() const noexcept { return sequences_.size(); }
  std::size_t prefixes() const noexcept { return prefixes_.size(); }
  std::uint64_t kept_bytes() const noexcept { return kept_bytes_; }
  std::uint64_t ring_bytes() const noexcept;

 private:
  const kept_prefix* prefix_of(const flow::step_table& table, request_id request) const;
  result<void> check_span(const flow::row_span& span, const kept_prefix* prefix) const;
  result<void> end_request(const flow::commitment& commitment, sequence_state& sequence);
  void count_kept();

  sequence_bounds bounds_;
  std::function<sequence_state()> make_;
  std::unordered_map<request_id, sequence_state> sequences_;
  std::unordered_map<prefix_id, kept_prefix> prefixes_;
  std::uint64_t kept_bytes_ = 0;  ///< of the pages that prefixes_ hold
};

}  // namespace cedar::stage
