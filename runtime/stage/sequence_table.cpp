#include "runtime/stage/sequence_table.hpp"

#include <algorithm>
#include <unordered_set>

namespace cedar::stage {

/// What a request of the step begins with; null: with nothing.
const kept_prefix* sequence_table::prefix_of(const flow::step_table& table,
                                             request_id request) const {
  const auto use = std::ranges::find(table.prefixes, request, &flow::prefix_use::request);
  if (use == table.prefixes.end()) return nullptr;
  const auto found = prefixes_.find(use->prefix);
  return found == prefixes_.end() ? nullptr : &found->second;
}

result<void> sequence_table::check_span(const flow::row_span& span,
                                        const kept_prefix* prefix) const {
  const std::string name = "request " + std::to_string(span.request.value);
  const std::uint64_t end = std::uint64_t{span.first_position} + span.rows_count;
  if (end > bounds_.context_max)
    return fail(errc::capacity, name + " reaches " + std::to_string(end) +
                                    " positions, the context holds " +
                                    std::to_string(bounds_.context_max));
  const auto found = sequences_.find(span.request);
  if (found == sequences_.end()) {
    if (!span.begins())
      return fail(errc::mismatch, name + " is unknown here and does not begin at position " +
                                      std::to_string(span.begin));
    const bool whole = span.stored % (bounds_.granule / memory::default_page_entries) == 0;
    if (span.stored > 0 && (prefix == nullptr || prefix->positions() < span.stored || !whole))
      return fail(errc::mismatch, name + " begins with " + std::to_string(span.stored) +
                                      " positions of a prefix that is not here");
    return {};
  }
  if (found->second.written() != span.first_position)
    return fail(errc::mismatch, name + " has " + std::to_string(found->second.written()) +
                                    " rows, the step continues at " +
                                    std::to_string(span.first_position));
  if (found->second.begin() != span.begin || found->second.stored() != span.stored)
    return fail(errc::mismatch, name + " began with another prefix");
  return {};
}

result<void> sequence_table::check(const flow::step_table& table) const {
  std::unordered_set<request_id> seen;
  std::size_t requests = sequences_.size();
  for (const flow::row_span& span : table.spans) {
    if (!seen.insert(span.request).second)
      return fail(errc::malformed,
                  "request " + std::to_string(span.request.value) + " has two spans of rows");
    if (const result<void> fits = check_span(span, prefix_of(table, span.request)); !fits)
      return fits;
    if (!sequences_.contains(span.request)) ++requests;
  }
  if (requests > bounds_.requests_max)
    return fail(errc::capacity, "the stage would hold " + std::to_string(requests) +
                                    " requests, its bound is " +
                                    std::to_string(bounds_.requests_max) + " (limits.requests)");
  return {};
}

result<sequence_state*> sequence_table::open(const flow::step_table& table,
                                             const flow::row_span& span) {
  auto found = sequences_.find(span.request);
  if (found == sequences_.end()) {
    found = sequences_.emplace(span.request, make_()).first;
    if (span.stored > 0) {
      const auto adopted = found->second.adopt(*prefix_of(table, span.request), span.begin,
                                               span.stored, bounds_.granule);
      if (!adopted) return fail(adopted.error());
    }
  }
  const std::uint32_t end = span.first_position + span.rows_count;
  if (const result<void> reserved = found->second.reserve(end); !reserved)
    return fail(reserved.error());
  found->second.write(table.step, end);
  return &found->second;
}

void sequence_table::take_back(const flow::step_table& table) {
  for (const flow::row_span& span : table.spans) {
    const auto found = sequences_.find(span.request);
    if (found == sequences_.end()) continue;
    if (span.begins())
      sequences_.erase(found);
    else
      found->second.truncate(span.first_position);
  }
}

void sequence_table::drop(std::span<const prefix_id> prefixes) {
  for (const prefix_id dropped : prefixes) prefixes_.erase(dropped);
  if (!prefixes.empty()) count_kept();
}

/// Prefixes that begin alike share pages.
void sequence_table::count_kept() {
  std::map<const std::byte*, std::size_t> pages;
  for (const auto& [id, prefix] : prefixes_) prefix.list_pages(pages);
  kept_bytes_ = 0;
  for (const auto& [page, bytes] : pages) kept_bytes_ += bytes;
}

std::uint64_t sequence_table::ring_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& [request, sequence] : sequences_) bytes += sequence.ring_bytes();
  return bytes;
}

sequence_state* sequence_table::find(request_id request) {
  const auto found = sequences_.find(request);
  return found == sequences_.end() ? nullptr : &found->second;
}

result<void> sequence_table::apply(const flow::verdict& verdict) {
  for (const flow::commitment& commitment : verdict.commitments) {
    const auto found = sequences_.find(commitment.request);
    if (found == sequences_.end()) continue;
    if (!commitment.finished) {
      found->second.commit(verdict.step, commitment.committed);
      continue;
    }
    if (const auto ended = end_request(commitment, found->second); !ended)
      return fail(ended.error().with("step " + std::to_string(verdict.step.value)));
    sequences_.erase(found);
  }
  return {};
}

result<void> sequence_table::end_request(const flow::commitment& commitment,
                                         sequence_state& sequence) {
  if (commitment.kept == prefix_id{}) return {};
  if (commitment.kept_positions > sequence.written())
    return fail(errc::mismatch, "request " + std::to_string(commitment.request.value) + " has " +
                                    std::to_string(sequence.written()) +
                                    " rows, the verdict keeps " +
                                    std::to_string(commitment.kept_positions));
  prefixes_.emplace(commitment.kept, std::move(sequence).keep(commitment.kept_positions));
  count_kept();
  return {};
}

}  // namespace cedar::stage
