// Goal: a machine without CUDA is told what is missing, whatever it is. Method: modules that are
// not there, no library, of something else, of another build; and this build's own, if it has one.
#include "kernels/registry/cuda_devices.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "tests/support/temporary_folder.hpp"

using namespace cedar;
using namespace cedar::kernels;

namespace {

void expect(const std::filesystem::path& module, errc code, const std::string& part) {
  const auto found = cuda_devices(module);
  BOOST_REQUIRE(!found);
  BOOST_TEST((found.error().code == code), found.error().message);
  BOOST_TEST(found.error().message.find(part) != std::string::npos, found.error().message);
  BOOST_TEST(usable_cuda_device(0, module).error().message == found.error().message);
  BOOST_TEST(make_cuda_backend(0, module).error().message == found.error().message);
}

cuda::device_description device(std::uint32_t architecture, bool reaches_host_memory) {
  plan::device_limits limits = plan::h200;
  limits.architecture = architecture;
  return {3, "NVIDIA X", 1, limits, reaches_host_memory};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_devices_of_a_module)

BOOST_AUTO_TEST_CASE(without_a_module) {
  expect("/nowhere/cedar-cuda.so", errc::not_found, "built without CUDA");
}

BOOST_AUTO_TEST_CASE(with_what_is_no_library) {
  const test::temporary_folder folder;
  const auto file = folder.path() / "cedar-cuda.so";
  std::ofstream(file) << "text";
  expect(file, errc::not_found, "cannot be opened");
}

BOOST_AUTO_TEST_CASE(with_a_library_of_something_else) {
  expect(CEDAR_OTHER_MODULE, errc::mismatch, "is not a module of this program");
}

BOOST_AUTO_TEST_CASE(with_a_module_of_another_build) {
  expect(CEDAR_OLD_MODULE, errc::mismatch, "is of another build (version 0, needed is 3)");
}

BOOST_AUTO_TEST_CASE(with_the_module_of_this_build) {
  const std::filesystem::path module = CEDAR_CUDA_MODULE;
  if (module.empty()) {
    BOOST_TEST_MESSAGE("skipped: this build has no CUDA module");
    return;
  }
  const auto found = cuda_devices(module);
  if (!found) {
    BOOST_TEST_MESSAGE("no device: " << found.error().message);
    BOOST_TEST(found.error().message.find("NVIDIA driver") != std::string::npos);
    return;
  }
  for (std::uint32_t index = 0; index < found->size(); ++index) {
    BOOST_TEST((*found)[index].index == index);
    BOOST_TEST((*found)[index].limits.multiprocessors > 0U);
  }
  const auto beyond = make_cuda_backend(1000, module);
  BOOST_REQUIRE(!beyond);
  BOOST_TEST(beyond.error().message.find("index 1000 is none of them") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(with_a_device_that_cannot_be_used) {
  BOOST_TEST(check_usable(device(80, true)).error().message ==
             "CUDA device 3 (NVIDIA X) has compute capability 8.0, and 9.0 is the least");
  const auto apart = check_usable(device(100, false));
  BOOST_REQUIRE(!apart);
  BOOST_TEST((apart.error().code == errc::refused));
  BOOST_TEST(apart.error().message.starts_with(
      "CUDA device 3 (NVIDIA X) does not reach the host's memory by its own addresses"));
  BOOST_TEST(check_usable(device(90, true)).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
