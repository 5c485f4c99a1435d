// The model tiny-12 (tests/data/golden) with random requests, step by step: what the tests of
// stages run. Every run gives logits by row, so that two runs can be compared bit by bit.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/local/local_engine.hpp"

namespace cedar::test {

/// Opened once, on the cpu backend.
const stage::model_source& tiny_model();
const kernels::backend& cpu_backend();

/// Ids of a random request, without the special ones at the start of the vocabulary.
std::vector<token_id> random_tokens(std::uint64_t seed, std::size_t count);

/// Consecutive rows of one request.
struct rows_of {
  request_id request;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// A step over rows of requests whose ids are given; every row's logits are wanted.
flow::step_table step_of(std::uint64_t step, const std::map<request_id, std::vector<token_id>>& ids,
                         const std::vector<rows_of>& rows);

/// A local engine with its requests' ids.
class tiny_run {
 public:
  explicit tiny_run(const local::engine_options& options = {64, 4, 256});

  /// Runs a step and keeps the logits of its rows; a row may be run again.
  void step(const std::vector<rows_of>& rows);
  /// The verdict on the last step: of each of its requests, `taken_back` rows do not stand.
  void settle(std::uint32_t taken_back = 0);
  void finish(request_id request);

  std::map<request_id, std::vector<token_id>> ids;
  /// By request and position: [vocabulary].
  std::map<std::pair<request_id, std::uint32_t>, std::vector<float>> logits;
  std::unique_ptr<local::local_engine> engine;

 private:
  flow::step_table last_;
  std::uint64_t steps_ = 0;
};

/// The logits that `ids` get as one request in one step: [rows][vocabulary].
std::vector<std::vector<float>> logits_alone(const std::vector<token_id>& ids);

/// The same bits.
bool same(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace cedar::test
