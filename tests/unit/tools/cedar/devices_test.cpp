// Goal: `cedar devices` says of every kind whether it can be used, and why not. Method: made-up
// machines; and this one.
#include "tools/cedar/devices.hpp"

#include <boost/test/unit_test.hpp>

using namespace cedar;
using namespace cedar::tools;

BOOST_AUTO_TEST_SUITE(devices_command)

BOOST_AUTO_TEST_CASE(shows_a_machine_without_cuda) {
  BOOST_TEST(render_devices({2, true, fail(errc::not_found, "no NVIDIA driver: install one")}) ==
             "kind       usable  what\n"
             "cpu        yes     2 processors: at most as many threads\n"
             "cuda       no      no NVIDIA driver: install one\n"
             "reference  yes     one thread, in double precision: to judge the others by\n");
}

BOOST_AUTO_TEST_CASE(shows_every_cuda_device) {
  using kernels::cuda::device_description;
  const std::vector<device_description> two{
      {0, "NVIDIA H200", std::uint64_t{141} << 30U, kernels::plan::h200, true},
      {1, "NVIDIA B200", std::uint64_t{180} << 30U, kernels::plan::b200, false}};
  const std::string text = render_devices({1, false, two});
  BOOST_TEST(text.find("cpu        no      the processor needs AVX2, FMA and F16C\n") !=
             std::string::npos);
  BOOST_TEST(text.find("cuda 0     yes     NVIDIA H200, 141 GiB, compute capability 9.0, 132 "
                       "multiprocessors\n") != std::string::npos,
             text);
  BOOST_TEST(text.find("cuda 1     no      NVIDIA B200, 180 GiB, compute capability 10.0, 148 "
                       "multiprocessors: ") != std::string::npos,
             text);
}

BOOST_AUTO_TEST_CASE(finds_those_of_this_machine) {
  const machine_devices found = find_devices();
  BOOST_TEST(found.processors >= 1U);
  // No module lies beside a test program.
  BOOST_REQUIRE(!found.cuda);
  BOOST_TEST(found.cuda.error().message.find("built without CUDA") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
