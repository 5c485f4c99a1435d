// Goal: attention's blocks fit every device, cover every head, and grow with the work. Method: the
// released shapes, and random ones on random devices.
#include "kernels/plan/attention.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"
#include "kernels/plan/occupancy.hpp"
#include "tests/unit/kernels/plan/devices.hpp"

using namespace cedar;
using namespace cedar::kernels::plan;

namespace {

void check(const attention_problem& problem, const device_limits& limits) {
  const attention_plan found = plan_attention(problem, limits);
  const std::string what = std::to_string(problem.groups) + " groups of " +
                           std::to_string(problem.queries) + " queries of " +
                           std::to_string(problem.head_dim);
  const bool tiles_known = found.tiles == 1 || found.tiles == 2 || found.tiles == 4;
  BOOST_TEST(tiles_known, what);
  const bool keys_known = found.tile_keys == 16 || found.tile_keys == 32 || found.tile_keys == 64;
  BOOST_TEST(keys_known, what);
  BOOST_TEST(found.threads == found.tiles * attention_warps * 32, what);
  BOOST_TEST(
      blocks_resident({found.threads, attention_registers, found.shared_bytes}, limits) >= 1U,
      what);
  const std::size_t queries = std::size_t{found.tiles} * attention_tile;
  BOOST_TEST(found.blocks * queries >= problem.queries, what);
  BOOST_TEST((found.blocks - 1) * queries < problem.queries, what);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_plans)

BOOST_AUTO_TEST_CASE(fit_at_released_shapes) {
  for (const device_limits& limits : test::known_devices())
    for (const std::size_t rows : {1, 6, 33, 128, 512, 8192})
      for (const std::size_t heads : {64, 32, 16, 8}) check({rows, heads, 512, false}, limits);
  // The vision tower: 16 heads of 64, up to 9216 patches.
  for (const device_limits& limits : test::known_devices())
    for (const std::size_t patches : {9, 1764, 9216}) check({16, patches, 64, true}, limits);
}

BOOST_AUTO_TEST_CASE(fit_at_random_shapes_on_random_devices) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const auto any = [&](std::size_t from, std::size_t to) {
      return std::uniform_int_distribution<std::size_t>(from, to)(random);
    };
    check({any(1, 300), any(1, 130), any(1, attention_head_dim_max), any(0, 1) == 1},
          test::random_device(random));
  }
}

BOOST_AUTO_TEST_CASE(take_more_heads_at_a_time_when_there_are_more_rows) {
  std::uint32_t before = 0;
  for (const std::size_t rows : {1, 16, 33, 66, 132, 500}) {
    const std::uint32_t tiles = plan_attention({rows, 64, 512, false}, h200).tiles;
    BOOST_TEST(tiles >= before);
    before = tiles;
  }
  BOOST_TEST(plan_attention({1, 64, 512, false}, h200).blocks == 4U);
  BOOST_TEST(before == 4U);
}

BOOST_AUTO_TEST_CASE(give_a_key_to_the_same_warp_in_tiles_of_every_size) {
  constexpr std::uint32_t keys = 256;
  for (const std::uint32_t tile : {16U, 32U, 64U}) {
    std::vector<std::uint32_t> owners(keys / 8, attention_warps);
    for (std::uint32_t first = 0; first < keys; first += tile)
      for (std::uint32_t warp = 0; warp < attention_warps; ++warp)
        for (std::uint32_t f = attention_fragment(warp, first); f < tile / 8; f += attention_warps)
          owners[first / 8 + f] = warp;
    for (std::uint32_t g = 0; g < owners.size(); ++g)
      BOOST_TEST(owners[g] == g % attention_warps, "fragment " << g << " in tiles of " << tile);
  }
}

BOOST_AUTO_TEST_CASE(refuse_heads_that_are_too_wide) {
  BOOST_CHECK_THROW(plan_attention({1, 1, 513, false}, h200), defect);
}

BOOST_AUTO_TEST_SUITE_END()
