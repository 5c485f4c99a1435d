// Goal: many requests at once get the bits that each gets alone, also while they take KV from each
// other. Method: random requests of mixed lengths and modes over tiny-12, one by one in chunks of
// one size, then all together with room for all and with KV for a few.
#include <boost/test/unit_test.hpp>

#include "tests/numeric/runtime/local/mixed_requests.hpp"

using namespace cedar;
using namespace cedar::test;

BOOST_AUTO_TEST_SUITE(concurrent_requests)

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_AUTO_TEST_CASE(get_the_bits_that_each_gets_alone) {
  const small_model model;
  const auto requests = mixed_requests(1);
  std::vector<answer> alone;
  for (const session::generation_request& one : requests)
    alone.push_back(
        model.run({one}, {.rows_per_step = 64, .requests_max = 1, .context_max = context}).front());

  const auto together = model.run(
      requests, {.rows_per_step = 48, .requests_max = requests_count, .context_max = context});
  check_same(together, alone);
  for (const answer& one : together) BOOST_TEST(one.used.preemptions == 0U);

  // Seven granules of 128 positions: about as many requests at once, until they grow.
  const auto scarce = model.run(requests, {.rows_per_step = 48,
                                           .requests_max = requests_count,
                                           .context_max = context,
                                           .kv_positions = 7 * 128});
  check_same(scarce, alone);
  std::uint32_t preemptions = 0;
  for (std::size_t i = 0; i < scarce.size(); ++i) {
    preemptions += scarce[i].used.preemptions;
    BOOST_TEST((scarce[i].used.encoder_rows > alone[i].used.encoder_rows) ==
               (scarce[i].used.preemptions > 0));
  }
  BOOST_TEST(preemptions > 0U);
}

BOOST_AUTO_TEST_SUITE_END()
