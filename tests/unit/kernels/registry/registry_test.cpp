// Goal: every listed name makes a backend of that name, and nothing else does.
#include "kernels/registry/registry.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

BOOST_AUTO_TEST_SUITE(backend_registry)

BOOST_AUTO_TEST_CASE(makes_every_backend_it_lists) {
  const auto names = cedar::kernels::backend_names();
  BOOST_TEST(std::set<std::string_view>(names.begin(), names.end()).size() == names.size());
  for (const std::string_view name : names) {
    const auto backend = cedar::kernels::make_backend(name);
    BOOST_REQUIRE(backend != nullptr);
    BOOST_TEST(backend->name() == name);
  }
}

BOOST_AUTO_TEST_CASE(always_has_the_reference) {
  const auto names = cedar::kernels::backend_names();
  BOOST_TEST((std::find(names.begin(), names.end(), "reference") != names.end()));
}

BOOST_AUTO_TEST_CASE(returns_null_for_an_unknown_name) {
  BOOST_TEST((cedar::kernels::make_backend("abacus") == nullptr));
  BOOST_TEST((cedar::kernels::make_backend("") == nullptr));
}

BOOST_AUTO_TEST_SUITE_END()
