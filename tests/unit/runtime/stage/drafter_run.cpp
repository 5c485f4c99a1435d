#include "tests/unit/runtime/stage/drafter_run.hpp"

#include <boost/test/unit_test.hpp>
#include <random>

#include "kernels/ops/selection.hpp"

namespace cedar::test {

using kernels::bf16;
using kernels::matrix_buffer;

namespace {
constexpr request_id one{1};
}

matrix_buffer<bf16> random_taps(std::uint64_t seed, std::size_t rows) {
  const model::model_config& config = tiny_model().config();
  std::mt19937_64 random(seed);
  matrix_buffer<bf16> out(rows, config.dspark.target_layers.size() * config.width);
  for (bf16& value : out.span())
    value = kernels::to_bf16(static_cast<float>(random() % 4001) / 1000.0F - 2.0F);
  return out;
}

drafter_run::drafter_run(const kernels::backend& backend, std::uint32_t requests_max) {
  auto made = tiny_model().make_drafter(backend, requests_max);
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
  drafter = std::move(*made);
}

result<void> drafter_run::try_extend(const std::vector<flow::row_span>& spans,
                                     kernels::matrix_view<const bf16> taps) {
  return drafter->extend(step_id{++steps_}, spans, taps);
}

result<void> drafter_run::try_settle(std::uint32_t committed) {
  return drafter->apply({step_id{steps_}, {}, {{one, committed, false}}});
}

void drafter_run::extend(const matrix_buffer<bf16>& all, std::uint32_t first, std::uint32_t count) {
  const flow::row_span span{one, first, count, count};
  const std::uint32_t tapped = stage::tapped_rows(span, tiny_model().config());
  const auto done = try_extend({span}, all.view().rows_from(first + count - tapped, tapped));
  BOOST_REQUIRE_MESSAGE(done, (done ? "" : done.error().message));
}

void drafter_run::settle(std::uint32_t committed) {
  const auto done = try_settle(committed);
  BOOST_REQUIRE_MESSAGE(done, (done ? "" : done.error().message));
}

std::vector<drafted> drafter_run::drafts(const std::vector<flow::draft_order>& orders) {
  std::vector<drafted> out(orders.size());
  const auto made =
      drafter->run(orders, [&](std::size_t index, std::uint32_t, std::span<const float> logits) {
        out[index].logits.insert(out[index].logits.end(), logits.begin(), logits.end());
        return kernels::arg_max(logits);
      });
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
  for (std::size_t i = 0; i < out.size(); ++i) out[i].tokens = (*made)[i].tokens;
  return out;
}

drafted drafter_run::draft(std::uint32_t position, token_id newest) {
  return drafts({{one, newest, position, 1}}).front();
}

drafted draft_alone(const matrix_buffer<bf16>& taps, std::uint32_t position, token_id newest) {
  drafter_run fresh;
  fresh.extend(taps, 0, position);
  return fresh.draft(position, newest);
}

}  // namespace cedar::test
