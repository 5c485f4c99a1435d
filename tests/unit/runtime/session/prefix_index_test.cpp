// Goal: the longest beginning is found, of exact entries where that is asked; what is kept stays
// within its bound, and what somebody holds is never dropped. Method: small indices by hand.
#include "runtime/session/prefix_index.hpp"

#include <boost/test/unit_test.hpp>
#include <numeric>

using namespace cedar;
using namespace cedar::session;

namespace {

std::vector<token_id> ids(token_id first, std::size_t count) {
  std::vector<token_id> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

std::vector<token_id> joined(std::vector<token_id> a, const std::vector<token_id>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// An index with matches of multiples of 2, and granules of 4 positions.
struct store {
  explicit store(std::uint64_t granules_max = 100) : index(2, granules_max) {}

  kv_holding kv(std::size_t positions) {
    kv_holding out;
    BOOST_REQUIRE(budget.extend(out, budget.needed(positions)));
    return out;
  }
  prefix_id keep(const std::vector<token_id>& tokens, std::uint32_t exact) {
    return index.keep(tokens, exact, kv(tokens.size()));
  }
  prefix_id keep(const std::vector<token_id>& tokens) {
    return keep(tokens, static_cast<std::uint32_t>(tokens.size()));
  }
  std::uint32_t longest(const std::vector<token_id>& tokens, bool exact = true) {
    return index.longest(tokens, exact).positions;
  }

  kv_budget budget{4, 1000};
  prefix_index index;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(prefix_index_unit)

BOOST_AUTO_TEST_CASE(the_longest_beginning_of_every_length_is_found) {
  store of;
  of.keep(ids(10, 20));
  of.keep(joined(ids(10, 7), ids(50, 30)));
  for (std::size_t common = 0; common <= 20; ++common)
    BOOST_TEST(of.longest(joined(ids(10, common), {1, 1, 1})) == common / 2 * 2);
  for (std::size_t common = 8; common <= 37; ++common)
    BOOST_TEST(of.longest(joined(ids(10, 7), joined(ids(50, common - 7), {1}))) == common / 2 * 2);
  BOOST_TEST(of.longest(ids(11, 20)) == 0U);
  BOOST_TEST(of.longest({}) == 0U);
}

BOOST_AUTO_TEST_CASE(approximate_entries_serve_only_who_takes_them) {
  store of;
  of.keep(ids(10, 20), 9);
  BOOST_TEST(of.longest(ids(10, 20), true) == 8U);
  BOOST_TEST(of.longest(ids(10, 20), false) == 20U);
  // An exact one says more, although it is shorter.
  BOOST_TEST((of.keep(ids(10, 12)) != prefix_id{}));
  BOOST_TEST(of.longest(ids(10, 20), true) == 12U);
  BOOST_TEST(of.longest(ids(10, 20), false) == 20U);
}

BOOST_AUTO_TEST_CASE(what_says_nothing_new_is_not_kept_and_what_says_less_is_dropped) {
  store of;
  const prefix_id first = of.keep(ids(10, 12));
  BOOST_TEST((of.keep(ids(10, 12)) == prefix_id{}));
  BOOST_TEST((of.keep(ids(10, 6)) == prefix_id{}));
  BOOST_TEST(of.index.size() == 1U);
  const prefix_id longer = of.keep(ids(10, 20));
  BOOST_TEST((longer != first && longer != prefix_id{}));
  BOOST_TEST(of.index.size() == 1U);
  BOOST_TEST((of.index.take_dropped() == std::vector{first}));
  BOOST_TEST(of.index.take_dropped().empty());
  BOOST_TEST(of.index.evictions() == 0U);
  BOOST_TEST(of.budget.used() == 5U);
}

BOOST_AUTO_TEST_CASE(the_one_that_was_not_used_for_the_longest_time_makes_room) {
  store of(6);
  const prefix_id a = of.keep(ids(100, 8));
  const prefix_id b = of.keep(ids(200, 8));
  of.keep(ids(300, 8));
  BOOST_TEST(of.longest(ids(100, 8)) == 8U);  // now b is the oldest
  of.keep(ids(400, 5));
  BOOST_TEST((of.index.take_dropped() == std::vector{b}));
  BOOST_TEST(of.index.granules() == 6U);
  {
    const prefix_match held = of.index.longest(ids(100, 8), true);
    BOOST_TEST(of.index.granules_held({}, false) == 2U);
    BOOST_TEST(of.index.granules_held(held, false) == 0U);  // but by who asks
    BOOST_TEST(of.index.granules_held(held, true) == 2U);
    of.keep(ids(500, 16));  // all but the one that is held
    BOOST_TEST(of.index.size() == 2U);
    BOOST_TEST((of.keep(ids(600, 24)) == prefix_id{}));
    BOOST_TEST((of.keep(ids(700, 25)) == prefix_id{}));  // more than all may have
  }
  while (of.index.drop_one()) continue;
  BOOST_TEST(of.index.empty());
  BOOST_TEST(std::ranges::count(of.index.take_dropped(), a) == 1);
  BOOST_TEST(of.budget.used() == 0U);
}

BOOST_AUTO_TEST_CASE(granules_of_several_count_once) {
  store of;
  const kv_holding first = of.kv(12);
  of.index.keep(joined(ids(10, 8), ids(30, 4)), 12, first);
  kv_holding second = first.first(2);
  BOOST_REQUIRE(of.budget.extend(second, 4));
  of.index.keep(joined(ids(10, 8), ids(60, 8)), 16, second);
  BOOST_TEST(of.index.granules() == 3U + 2U);
  BOOST_TEST(of.budget.used() == 5U);
}

BOOST_AUTO_TEST_CASE(no_more_is_dropped_than_a_step_table_can_say) {
  store of;
  std::size_t dropped = 0;
  for (token_id i = 0; i < 3000; ++i) {
    of.index.keep({i, i + 1}, 2, of.kv(1));
    if (i % 1500 == 1499) {
      const auto now = of.index.take_dropped();
      BOOST_TEST(now.size() <= flow::prefixes_dropped_max);
      dropped += now.size();
    }
  }
  BOOST_TEST(dropped > 0U);
  BOOST_TEST(of.index.size() <= flow::prefixes_dropped_max / 2);
}

BOOST_AUTO_TEST_SUITE_END()
