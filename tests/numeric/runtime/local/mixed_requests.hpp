// Requests of mixed lengths and modes, and what they get of a model.
#pragma once

#include <memory>
#include <vector>

#include "runtime/local/local_engine.hpp"

namespace cedar::test {

inline constexpr std::uint32_t requests_count = 20;
inline constexpr std::uint32_t context = 320;

struct answer {
  std::vector<std::uint32_t> positions;
  std::vector<token_id> tokens;
  std::vector<float> logits;
  session::finish_reason finish = session::finish_reason::none;
  session::usage used;
};

class small_model {
 public:
  /// Throws if the checkpoint folder cannot be opened.
  explicit small_model(const std::string& folder = CEDAR_TEST_DATA "/golden/tiny-12");

  const model::model_config& config() const noexcept { return source_->config(); }

  std::unique_ptr<local::local_engine> open(const local::engine_options& options) const;
  /// Runs all requests together; no state of any may be left behind.
  std::vector<answer> run(const std::vector<session::generation_request>& requests,
                          const local::engine_options& options) const;

 private:
  std::unique_ptr<stage::model_source> source_;
  std::unique_ptr<kernels::backend> backend_;
};

/// What an engine gives, run together; no state of any request may be left behind.
std::vector<answer> answers_of(local::local_engine& engine,
                               const std::vector<session::generation_request>& requests);

/// Some of a few tokens, some of a page's length, some long; most of them grow beyond a page.
std::vector<session::generation_request> mixed_requests(std::uint64_t seed);

/// The same rows, tokens and bits.
void check_same(const std::vector<answer>& actual, const std::vector<answer>& expected);

}  // namespace cedar::test
