// Goal: no more than so many fetch at once, in the order in which they came, and whoever goes lets
// others come. Method: turns that note when they begin.
#include "runtime/http/internal/download_gate.hpp"

#include <boost/test/unit_test.hpp>
#include <vector>

using cedar::http::download_gate;

namespace {

struct noted_turns {
  explicit noted_turns(std::uint32_t at_once) : gate(at_once) {}

  auto enter(int who) {
    return gate.enter([this, who] { begun.push_back(who); });
  }
  void check(const std::vector<int>& expected, std::uint32_t waiting) const {
    BOOST_TEST(begun == expected, boost::test_tools::per_element());
    BOOST_TEST(gate.waiting() == waiting);
  }

  std::vector<int> begun;
  download_gate gate;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(download_gates)

BOOST_AUTO_TEST_CASE(let_so_many_in_and_the_others_in_their_order) {
  noted_turns turns(2);
  auto first = turns.enter(1);
  auto second = turns.enter(2);
  auto third = turns.enter(3);
  auto fourth = turns.enter(4);
  turns.check({1, 2}, 2);
  BOOST_TEST(turns.gate.fetching() == 2U);
  second.reset();
  turns.check({1, 2, 3}, 1);
  first.reset();
  turns.check({1, 2, 3, 4}, 0);
  third.reset();
  fourth.reset();
  BOOST_TEST(turns.gate.fetching() == 0U);
  const auto fifth = turns.enter(5);
  turns.check({1, 2, 3, 4, 5}, 0);
}

BOOST_AUTO_TEST_CASE(forget_who_goes_before_its_turn) {
  noted_turns turns(1);
  auto first = turns.enter(1);
  auto second = turns.enter(2);
  const auto third = turns.enter(3);
  second.reset();
  turns.check({1}, 1);
  first.reset();
  turns.check({1, 3}, 0);
  BOOST_TEST(turns.gate.fetching() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
