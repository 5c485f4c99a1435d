// A drafter of tiny-12 that is driven step by step with random taps; drafts are compared bit by
// bit, logits included.
#pragma once

#include <memory>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "runtime/stage/drafter_stage.hpp"
#include "tests/unit/runtime/stage/tiny_model.hpp"

namespace cedar::test {

/// Taps of `rows` rows of a request: [rows, targets * d].
kernels::matrix_buffer<kernels::bf16> random_taps(std::uint64_t seed, std::size_t rows);

/// Everything that a draft gives.
struct drafted {
  std::vector<model::draft_token> tokens;
  std::vector<float> logits;  ///< [block, vocabulary]

  friend bool operator==(const drafted&, const drafted&) = default;
};

class drafter_run {
 public:
  explicit drafter_run(const kernels::backend& backend = cpu_backend(),
                       std::uint32_t requests_max = 4);

  /// The next step, and the verdict on the last one.
  result<void> try_extend(const std::vector<flow::row_span>& spans,
                          kernels::matrix_view<const kernels::bf16> taps);
  result<void> try_settle(std::uint32_t committed);

  /// Rows [first, first + count) of request 1, whose taps from position 0 on are `all`.
  void extend(const kernels::matrix_buffer<kernels::bf16>& all, std::uint32_t first,
              std::uint32_t count);
  /// Rows [0, committed) of request 1 stand.
  void settle(std::uint32_t committed);

  /// Greedy drafts.
  std::vector<drafted> drafts(const std::vector<flow::draft_order>& orders);
  /// That of request 1.
  drafted draft(std::uint32_t position, token_id newest = 7);

  std::unique_ptr<stage::drafter_stage> drafter;

 private:
  std::uint64_t steps_ = 0;
};

/// The draft of a request that came in one step and is alone.
drafted draft_alone(const kernels::matrix_buffer<kernels::bf16>& taps, std::uint32_t position,
                    token_id newest = 7);

}  // namespace cedar::test
