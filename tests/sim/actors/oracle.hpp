// What requests must get, from the engine without actors, and the requests themselves.
#pragma once

#include <memory>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/session/step_scheduler.hpp"
#include "runtime/stage/model_source.hpp"

namespace cedar::test {

/// tiny-12 (tests/data/golden) on the cpu backend, opened once.
const stage::model_source& tiny_model();
/// tiny-vision likewise: of the same shape, with a vision tower.
const stage::model_source& vision_model();
const kernels::backend& cpu_backend();

/// One row event, with copies of what it referred to.
struct answered_row {
  std::uint32_t position = 0;
  bool in_prompt = false;
  token_id token = 0;
  float log_probability = 0;
  session::finish_reason finish = session::finish_reason::none;
  std::vector<float> logits;

  explicit answered_row(const session::row_event& event);
  /// The same bits.
  friend bool operator==(const answered_row& a, const answered_row& b);
};

struct expected_answers {
  std::vector<std::vector<answered_row>> rows;  ///< by request
  std::vector<session::usage> used;
  std::vector<flow::verdict> verdicts;  ///< if one step runs at a time
  std::vector<flow::tap> taps;
};

using request_wave = std::vector<session::generation_request>;

/// Runs waves of requests, each when the last one has ended, through local_engine, one step at a
/// time, without drafts. Results by request, wave after wave.
expected_answers local_answers(const std::vector<request_wave>& waves,
                               const session::scheduler_limits& limits,
                               const stage::model_source& model = tiny_model());
inline expected_answers local_answers(const request_wave& requests,
                                      const session::scheduler_limits& limits,
                                      const stage::model_source& model = tiny_model()) {
  return local_answers(std::vector<request_wave>{requests}, limits, model);
}

/// Options of a request that samples.
flow::sampling_options random_sampling(std::uint64_t seed);

/// `count` random requests: short and long prompts, some with forced ids, some with logits.
std::vector<session::generation_request> random_requests(std::uint64_t seed, std::size_t count);

/// The same with answers that are worth drafting.
std::vector<session::generation_request> longer_requests(std::uint64_t seed, std::size_t count);

}  // namespace cedar::test
