// Goal: CUDA's own runtime keeps what the handles promise, and without a driver says what is
// missing. Method: the round trips of the runtime in memory on device 0, where there is one; where
// there is none, every call that makes something must fail with the reason that devices() gives.
#include <boost/test/unit_test.hpp>

#include "kernels/cuda/handles/cudart_runtime.hpp"
#include "kernels/cuda/handles/graph.hpp"
#include "tests/unit/kernels/cuda/handles/round_trips.hpp"

using namespace cedar;
using namespace cedar::kernels::cuda;

BOOST_AUTO_TEST_SUITE(cuda_runtime_library)

BOOST_AUTO_TEST_CASE(round_trips_on_a_device) {
  const auto api = make_cudart_runtime();
  const auto devices = api->devices();
  if (!devices) {
    BOOST_TEST_MESSAGE("skipped: " << devices.error().message);
    return;
  }
  test::check_copies(*api);
  test::check_events(*api);
  test::check_graphs(*api);
  test::check_failed_captures(*api);
}

BOOST_AUTO_TEST_CASE(without_a_device_every_call_says_why) {
  const auto api = make_cudart_runtime();
  const auto devices = api->devices();
  if (devices) {
    BOOST_TEST_MESSAGE("skipped: there are " << devices->size() << " devices");
    return;
  }
  const error& why = devices.error();
  BOOST_TEST((why.code == errc::not_found || why.code == errc::mismatch));
  BOOST_TEST(why.message.find("driver") != std::string::npos, why.message);
  const device_ref on{api.get(), 0};
  const auto memory = device_buffer::make(on, 16);
  BOOST_REQUIRE(!memory);
  BOOST_TEST((memory.error().code == why.code));
  BOOST_TEST(memory.error().message == "CUDA device 0: 16 bytes of its memory: " + why.message);
  BOOST_TEST((pinned_buffer::make(on, 16).error().code == why.code));
  BOOST_TEST(stream::make(on).error().message == "a stream: " + why.message);
  BOOST_TEST(event::make(on).error().message == "an event: " + why.message);
}

BOOST_AUTO_TEST_SUITE_END()
