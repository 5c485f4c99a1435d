// Goal: every code has a name of its own, and context goes in front of a message. Method: the whole
// enumeration.
#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"

using namespace cedar;

BOOST_AUTO_TEST_SUITE(errors)

BOOST_AUTO_TEST_CASE(every_code_has_a_name_of_its_own) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(errc::defect); ++code)
    names.insert(std::string(to_string(static_cast<errc>(code))));
  BOOST_TEST(names.size() == static_cast<std::size_t>(errc::defect) + 1);
  BOOST_TEST(!names.contains(std::string(to_string(static_cast<errc>(255)))));
  BOOST_TEST(names.contains("peer lost"));
}

BOOST_AUTO_TEST_CASE(context_goes_in_front_and_the_code_stays) {
  const result<int> failed = fail(errc::timeout, "no answer");
  BOOST_REQUIRE(!failed);
  const error with = failed.error().with("node 'back'").with("start");
  BOOST_TEST(with.message == "start: node 'back': no answer");
  BOOST_TEST((with.code == errc::timeout));
  const result<int> passed_on = fail(with);
  BOOST_TEST(passed_on.error().message == with.message);
}

BOOST_AUTO_TEST_CASE(ids_order_and_hash_by_their_number_and_do_not_mix) {
  BOOST_TEST((step_id{3} < step_id{10}));
  BOOST_TEST((step_id{3} == step_id{3}));
  BOOST_TEST(std::hash<request_id>{}(request_id{7}) == std::hash<std::uint64_t>{}(7));
  static_assert(!std::is_convertible_v<step_id, request_id>);
  static_assert(!std::is_convertible_v<std::uint64_t, step_id>);
}

BOOST_AUTO_TEST_SUITE_END()
