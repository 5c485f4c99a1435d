// Goal: every listed name makes a backend of that name, and nothing else does.
#include "kernels/registry/registry.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "kernels/base/check.hpp"

using cedar::kernels::backend_names;
using cedar::kernels::make_backend;
using cedar::kernels::most_threads;

BOOST_AUTO_TEST_SUITE(backend_registry)

BOOST_AUTO_TEST_CASE(makes_every_backend_it_lists) {
  const auto names = backend_names();
  BOOST_TEST(std::set<std::string_view>(names.begin(), names.end()).size() == names.size());
  for (const std::string_view name : names) {
    const auto backend = make_backend(name);
    BOOST_REQUIRE(backend != nullptr);
    BOOST_TEST(backend->name() == name);
  }
}

BOOST_AUTO_TEST_CASE(always_has_the_reference) {
  const auto names = backend_names();
  BOOST_TEST((std::find(names.begin(), names.end(), "reference") != names.end()));
}

BOOST_AUTO_TEST_CASE(makes_backends_of_as_many_threads_as_they_take) {
  for (const std::string_view name : backend_names()) {
    const std::uint32_t most = most_threads(name);
    BOOST_TEST(most == (name == "cpu" ? 256U : 1U));
    BOOST_TEST((make_backend(name, {most}) != nullptr));
    BOOST_CHECK_THROW(make_backend(name, {most + 1}), cedar::defect);
    BOOST_CHECK_THROW(make_backend(name, {0}), cedar::defect);
  }
}

BOOST_AUTO_TEST_CASE(returns_null_for_an_unknown_name) {
  BOOST_TEST((make_backend("abacus") == nullptr));
  BOOST_TEST((make_backend("") == nullptr));
  BOOST_TEST(most_threads("abacus") == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
