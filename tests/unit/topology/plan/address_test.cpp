// Goal: nothing that other hosts can reach is taken for loopback, and no nonsense for a host name.
// Method: addresses of each kind, as their RFCs write them.
#include "topology/plan/internal/address.hpp"

#include <boost/test/unit_test.hpp>

using namespace cedar::topology::internal;

namespace {

void all_are(address_kind kind, const std::vector<std::string>& addresses) {
  for (const auto& address : addresses) {
    BOOST_TEST(static_cast<int>(classify_address(address)) == static_cast<int>(kind), address);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(node_address)

BOOST_AUTO_TEST_CASE(tells_the_kinds_of_addresses_apart) {
  all_are(address_kind::loopback,
          {"127.0.0.1", "127.0.0.2", "127.255.255.254", "::1", "localhost", "::ffff:127.0.0.1"});
  all_are(address_kind::remote,
          {"10.0.0.1", "128.0.0.1", "192.168.1.7", "fe80::1", "2001:db8::5", "::ffff:10.0.0.1",
           "gpu-7", "node1.example.org", "a.b-c.d1", "localhost.example.org", "0x7f"});
  all_are(address_kind::any, {"0.0.0.0", "::"});
  all_are(address_kind::malformed,
          {"", "127.0.0.1:80", "127.0.0", "127.0.0.256", "1", "[::1]", "::1::2", "-a", "a-", "a..b",
           "a.", ".a", "two words", "under_score", std::string(64, 'a'), std::string(300, 'a')});
}

BOOST_AUTO_TEST_SUITE_END()
