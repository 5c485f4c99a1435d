// Goal: how a device's limits cut attention and index scores changes no bit. Method: the same call
// on devices that hold one, two and four tiles of queries in a block, and 64, 32 and 16 keys.
#include <algorithm>
#include <cstring>
#include <set>

#include "kernels/cuda/launch/cuda_backend.hpp"
#include "kernels/plan/attention.hpp"
#include "tests/numeric/kernels/random_tensors.hpp"
#include "tests/support/backends.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

/// A device with so many multiprocessors, and as much shared memory as blocks with so many keys
/// need.
plan::device_limits device(std::uint32_t multiprocessors, const plan::attention_problem& problem,
                           std::uint32_t tiles, std::uint32_t keys) {
  plan::device_limits out = plan::h200;
  out.multiprocessors = multiprocessors;
  out.shared_bytes_per_block =
      static_cast<std::uint32_t>(plan::attention_shared_bytes(problem, tiles, keys));
  return out;
}

/// Every cut of the problem that a device can ask for; run(limits, o) computes o [rows, cols].
template <class Run>
void check_cuts(const plan::attention_problem& problem, std::size_t rows, std::size_t cols,
                const Run& run) {
  matrix_buffer<bf16> first(rows, cols);
  run(plan::h200, first.view());
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (const std::uint32_t multiprocessors : {1U, 132U})
    for (const std::uint32_t tiles : {1U, 2U, 4U})
      for (const std::uint32_t keys : {16U, 32U, 64U}) {
        const plan::device_limits limits = device(multiprocessors, problem, tiles, keys);
        const plan::attention_plan cut = plan::plan_attention(problem, limits);
        if (!seen.insert({cut.tiles, cut.tile_keys}).second) continue;
        matrix_buffer<bf16> other(rows, cols);
        run(limits, other.view());
        BOOST_TEST(std::memcmp(first.data(), other.data(), rows * cols * sizeof(bf16)) == 0,
                   cut.tiles << " tiles, " << cut.tile_keys << " keys");
      }
  BOOST_TEST(seen.size() >= 6U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_cuts)

BOOST_AUTO_TEST_CASE(of_attention_over_entries) {
  constexpr std::size_t heads = 70, head_dim = 96, rows = 2;
  random_tensors random(3);
  const auto q = random.half(rows, heads * head_dim);
  const auto sinks = random.full(1, heads);
  const auto window = random.entries(entry_format::fp8_e8m0_32, 40, head_dim);
  const auto selected = random.entries(entry_format::fp4_e4m3_16, 61, head_dim);
  const auto windows = row_pointers(window.view()), others = row_pointers(selected.view());
  const std::vector<attention_entries> entries{{windows, others},
                                               {std::span(windows).first(3), {}}};
  check_cuts({rows, heads, head_dim, false}, rows, heads * head_dim,
             [&](const plan::device_limits& limits, matrix_view<bf16> o) {
               const cuda::cuda_backend backend({}, limits);
               backend.attention({o, q.view(), entries, sinks.span(), head_dim, 0.1F,
                                  entry_format::fp8_e8m0_32, entry_format::fp4_e4m3_16});
             });
}

BOOST_AUTO_TEST_CASE(of_full_attention) {
  constexpr std::size_t heads = 2, head_dim = 24, rows = 67;
  random_tensors random(4);
  const auto q = random.half(rows, heads * head_dim), k = random.half(75, heads * head_dim),
             v = random.half(75, heads * head_dim);
  check_cuts({heads, rows, head_dim, true}, rows, heads * head_dim,
             [&](const plan::device_limits& limits, matrix_view<bf16> o) {
               const cuda::cuda_backend backend({}, limits);
               backend.full_attention({o, q.view(), k.view(), v.view(), head_dim, 0.2F});
             });
}

BOOST_AUTO_TEST_CASE(of_index_scores) {
  constexpr std::size_t heads = 3, head_dim = 64, count = 200;
  random_tensors random(5);
  const auto query = random.entries(entry_format::fp4_e8m0_32, heads, head_dim);
  const auto keys = random.entries(entry_format::fp4_e8m0_32, count, head_dim);
  const auto weights = random.half(1, heads);
  const auto scores_on = [&](std::uint32_t multiprocessors) {
    plan::device_limits limits = plan::h200;
    limits.multiprocessors = multiprocessors;
    limits.blocks_per_multiprocessor = 1;
    std::vector<bf16> scores(count);
    const std::vector<const std::byte*> run{keys.data()};
    cuda::cuda_backend({}, limits)
        .index_scores({scores, query.view(), weights.span(), run, head_dim, count});
    return scores;
  };
  BOOST_TEST((scores_on(1) == scores_on(132)));
}

BOOST_AUTO_TEST_SUITE_END()
