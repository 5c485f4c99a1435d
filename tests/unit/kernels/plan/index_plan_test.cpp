// Goal: the blocks that score index keys fit every device and are as many as it holds, no more.
// Method: the released shape at all lengths, and random ones on random devices.
#include "kernels/plan/index_scores.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"
#include "kernels/plan/occupancy.hpp"
#include "tests/unit/kernels/plan/devices.hpp"

using namespace cedar;
using namespace cedar::kernels::plan;

namespace {

void check(const index_problem& problem, const device_limits& limits) {
  const index_plan found = plan_index_scores(problem, limits);
  const std::string what =
      std::to_string(problem.keys) + " keys, " + std::to_string(problem.heads) + " heads";
  BOOST_TEST(found.shared_bytes <= limits.shared_bytes_per_block, what);
  BOOST_TEST(found.threads <= limits.threads_per_block, what);
  BOOST_TEST(found.heads_padded >= problem.heads, what);
  BOOST_TEST(found.heads_padded % 8 == 0U, what);
  BOOST_TEST(found.blocks >= 1U, what);
  BOOST_TEST((found.blocks - 1) * std::size_t{index_tile_keys} < problem.keys, what);
  const std::uint32_t resident = blocks_resident({found.threads, 128, found.shared_bytes}, limits);
  BOOST_TEST(resident >= 1U, what);
  BOOST_TEST(found.blocks <= resident * limits.multiprocessors, what);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(index_plans)

BOOST_AUTO_TEST_CASE(fit_at_the_released_shape) {
  for (const device_limits& limits : test::known_devices()) {
    std::uint32_t before = 0;
    for (const std::size_t keys : {1, 64, 65, 2048, 65536, 1048576}) {
      check({keys, 32, 128}, limits);
      const std::uint32_t blocks = plan_index_scores({keys, 32, 128}, limits).blocks;
      BOOST_TEST(blocks >= before);
      before = blocks;
    }
    BOOST_TEST(before >= limits.multiprocessors);
  }
}

BOOST_AUTO_TEST_CASE(fit_at_random_shapes_on_random_devices) {
  std::mt19937 random(8);
  for (int i = 0; i < 2000; ++i)
    check({std::uniform_int_distribution<std::size_t>(1, 100000)(random),
           std::uniform_int_distribution<std::size_t>(1, 64)(random),
           32 * std::uniform_int_distribution<std::size_t>(1, 8)(random)},
          test::random_device(random));
}

BOOST_AUTO_TEST_CASE(refuse_heads_that_do_not_fit) {
  BOOST_CHECK_THROW(plan_index_scores({1, 4096, 512}, h200), defect);
}

BOOST_AUTO_TEST_SUITE_END()
