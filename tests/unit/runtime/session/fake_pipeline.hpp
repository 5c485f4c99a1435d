// A pipeline that the scheduler's tests drive by hand: its "model" is a hash of all ids up to a
// row, so that a wrong id, position or order anywhere changes the next token.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "runtime/session/step_scheduler.hpp"

namespace cedar::test {

/// The model's choice for the token after `ids`.
token_id choice_after(std::span<const token_id> ids, std::uint32_t vocabulary);

/// What one request gets if it runs alone, row by row.
struct expected_run {
  struct event {
    std::uint32_t position = 0;
    bool in_prompt = false;
    token_id token = 0;
    session::finish_reason finish = session::finish_reason::none;

    friend bool operator==(const event&, const event&) = default;
  };
  std::vector<event> events;
  session::usage used;
};
expected_run run_alone(const session::generation_request& request,
                       const session::scheduler_limits& limits);

/// Takes steps as the stages and the head would: remembers every id that it was given, checks that
/// a step continues the request or begins with the ids of a kept prefix, that look-back ids are the
/// true ones and that all ids together are within the KV budget, and proposes.
class fake_pipeline {
 public:
  explicit fake_pipeline(const session::scheduler_limits& limits) : limits_(limits) {}

  /// Fails the running test case if the table contradicts what came before.
  void take(flow::step_table table);
  /// The answer to the oldest step.
  flow::proposal answer();
  /// Forgets the requests that the verdict ends, and the rows that it takes back.
  void apply(const flow::verdict& verdict);
  std::size_t steps() const { return steps_.size(); }
  const flow::step_table& oldest() const { return steps_.front(); }

  /// Ids of a request so far; empty if it never had a row.
  const std::vector<token_id>& ids(request_id request) { return ids_[request]; }
  std::size_t requests() const { return ids_.size(); }
  std::size_t prefixes() const { return prefixes_.size(); }

 private:
  using granules = std::vector<std::shared_ptr<int>>;  ///< SHARED: by those that begin alike
  struct kept {
    std::vector<token_id> ids;
    granules held;
  };

  void begin(const flow::step_table& table, const flow::row_span& span);
  void check_budget() const;
  std::uint64_t needed(std::size_t positions) const {
    return (positions + limits_.kv_granule - 1) / limits_.kv_granule;
  }
  bool in_flight(request_id request) const;

  session::scheduler_limits limits_;
  std::map<request_id, std::vector<token_id>> ids_;
  std::map<request_id, granules> held_;
  std::map<request_id, std::vector<token_id>> replayed_;  ///< what a prefix has in place of rows
  std::map<prefix_id, kept> prefixes_;
  std::deque<flow::step_table> steps_;
};

}  // namespace cedar::test
