// Goal: the number of blocks on a multiprocessor is NVIDIA's. Method: cases worked out by hand from
// the rules of the programming guide, one for each limit; and that more needs never mean more
// blocks.
#include "kernels/plan/occupancy.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/kernels/plan/devices.hpp"

using namespace cedar;
using namespace cedar::kernels::plan;

BOOST_AUTO_TEST_SUITE(occupancy)

BOOST_AUTO_TEST_CASE(is_bounded_by_each_limit) {
  BOOST_TEST(blocks_resident({32, 16, 0}, h200) == 32U);  // blocks
  BOOST_TEST(blocks_resident({256, 32, 0}, h200) == 8U);  // threads: 2048 / 256
  BOOST_TEST(blocks_resident({33, 16, 0}, h200) == 32U);  // two warps each, 64 fit
  BOOST_TEST(blocks_resident({128, 128, 0}, h200) == 4U);  // registers: 65536 / (128 * 128)
  BOOST_TEST(blocks_resident({128, 33, 0}, h200) == 12U);  // 33 * 32 are 1280 by units of 256
  BOOST_TEST(blocks_resident({128, 32, 83968}, h200) == 2U);  // shared: 228 KiB / (82 + 1) KiB
}

BOOST_AUTO_TEST_CASE(is_nothing_for_what_cannot_be_launched) {
  BOOST_TEST(blocks_resident({0, 32, 0}, h200) == 0U);
  BOOST_TEST(blocks_resident({1025, 32, 0}, h200) == 0U);
  BOOST_TEST(blocks_resident({32, 256, 0}, h200) == 0U);
  BOOST_TEST(blocks_resident({1024, 128, 0}, h200) == 0U);  // twice the registers that there are
  BOOST_TEST(blocks_resident({32, 32, h200.shared_bytes_per_block + 1}, h200) == 0U);
  BOOST_TEST(blocks_resident({32, 32, h200.shared_bytes_per_block}, h200) == 1U);
}

BOOST_AUTO_TEST_CASE(falls_as_needs_grow) {
  std::mt19937 random(9);
  const auto any = [&](std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random);
  };
  for (int i = 0; i < 2000; ++i) {
    const device_limits limits = test::random_device(random);
    const block_needs less{any(1, 1024), any(1, 255), any(0, 230000)};
    const block_needs more{any(less.threads, 1024), any(less.registers_per_thread, 255),
                           any(less.shared_bytes, 230000)};
    BOOST_TEST(blocks_resident(more, limits) <= blocks_resident(less, limits));
  }
}

BOOST_AUTO_TEST_SUITE_END()
