// Every backend of the registry as a Boost.Test data set: a case that runs once per backend.
//
//   BOOST_DATA_TEST_CASE(rotates_pairs, cedar::test::backends(), name) {
//     const auto backend = cedar::test::backend_of(name);
//
// Programs that use it link cedar::kernels_registry.
#pragma once

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/registry/registry.hpp"

namespace cedar::test {

inline auto backends() {
  std::vector<std::string> names;
  for (const std::string_view name : kernels::backend_names()) names.emplace_back(name);
  return boost::unit_test::data::make(std::move(names));
}

inline std::unique_ptr<kernels::backend> backend_of(const std::string& name) {
  auto backend = kernels::make_backend(name);
  BOOST_REQUIRE(backend != nullptr);
  return backend;
}

}  // namespace cedar::test
