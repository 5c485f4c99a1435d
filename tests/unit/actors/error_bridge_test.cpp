// Goal: our errors pass through CAF unchanged, and CAF's become ours. Method: every code both ways;
// the foreign errors that requests meet.
#include "actors/error_bridge.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"
#include "tests/unit/actors/test_system.hpp"

using namespace cedar;

BOOST_AUTO_TEST_SUITE(error_bridge)

BOOST_AUTO_TEST_CASE(every_code_and_text_comes_back) {
  test::test_system actors;
  for (int number = 0; number <= static_cast<int>(errc::defect); ++number) {
    const error what{static_cast<errc>(number), "text " + std::to_string(number)};
    const caf::error foreign = actors::to_caf(what);
    BOOST_TEST(static_cast<bool>(foreign));  // never CAF's "no error"
    const error back = actors::from_caf(actors.system(), foreign);
    BOOST_TEST((back.code == what.code));
    BOOST_TEST(back.message == what.message);
  }
}

BOOST_AUTO_TEST_CASE(cafs_own_errors_get_the_nearest_code) {
  test::test_system actors;
  const auto from = [&](const caf::error& what) { return actors::from_caf(actors.system(), what); };
  BOOST_TEST((from(caf::sec::request_timeout).code == errc::timeout));
  BOOST_TEST((from(caf::sec::request_receiver_down).code == errc::peer_lost));
  const error other = from(caf::sec::bad_function_call);
  BOOST_TEST((other.code == errc::io));
  BOOST_TEST(other.message.find("bad_function_call") != std::string::npos, other.message);
}

BOOST_AUTO_TEST_CASE(what_escapes_from_a_handler_is_a_defect_with_its_text) {
  const error known = actors::defect_of(std::make_exception_ptr(std::logic_error("two owners")));
  BOOST_TEST((known.code == errc::defect));
  BOOST_TEST(known.message == "two owners");
  BOOST_TEST((actors::defect_of(std::make_exception_ptr(7)).code == errc::defect));
}

BOOST_AUTO_TEST_SUITE_END()
