// Goal: hosts are found by name and by address, and a name that leads nowhere is told.
// Method: names that need no name server.
#include "topology/launch/host.hpp"

#include <boost/test/unit_test.hpp>

using namespace cedar;

BOOST_AUTO_TEST_SUITE(host)

BOOST_AUTO_TEST_CASE(has_an_address) {
  BOOST_TEST(topology::address_of("10.20.30.40").value_or("none") == "10.20.30.40");
  BOOST_TEST(topology::address_of("localhost").value_or("none") == "127.0.0.1");
}

BOOST_AUTO_TEST_CASE(without_an_address_is_named) {
  for (const std::string name : {"two words", "fe80::1"}) {
    const auto found = topology::address_of(name);
    BOOST_REQUIRE(!found.has_value());
    BOOST_TEST((found.error().code == errc::not_found));
    BOOST_TEST(found.error().message.find("host '" + name + "' has no IPv4 address") == 0U,
               found.error().message);
  }
}

BOOST_AUTO_TEST_SUITE_END()
