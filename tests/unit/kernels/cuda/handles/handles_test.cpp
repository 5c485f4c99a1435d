// Goal: handles release what they make, once; work arrives when it is waited for; devices do not
// mix. Method: a runtime in memory that does nothing before somebody waits, counts, and fails on
// demand.
#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"
#include "kernels/cuda/handles/graph.hpp"
#include "tests/unit/kernels/cuda/handles/queued_runtime.hpp"
#include "tests/unit/kernels/cuda/handles/round_trips.hpp"

using namespace cedar;
using namespace cedar::kernels::cuda;
using cedar::test::queued_runtime;

BOOST_AUTO_TEST_SUITE(cuda_handles)

BOOST_AUTO_TEST_CASE(work_arrives_and_nothing_stays_alive) {
  queued_runtime api;
  test::check_copies(api);
  BOOST_TEST(api.alive() == 0U);
  test::check_events(api);
  BOOST_TEST(api.alive() == 0U);
  test::check_graphs(api);
  BOOST_TEST(api.alive() == 0U);
  test::check_failed_captures(api);
  BOOST_TEST(api.alive() == 0U);
}

BOOST_AUTO_TEST_CASE(without_a_wait_nothing_has_arrived) {
  queued_runtime api;
  const device_ref on{&api, 0};
  const auto in = *pinned_buffer::make(on, 8);
  const auto out = *pinned_buffer::make(on, 8);
  const auto there = *device_buffer::make(on, 8);
  const auto one = *stream::make(on);
  const auto other = *stream::make(on);
  in.span()[0] = std::byte{1};
  out.span()[0] = std::byte{2};
  BOOST_REQUIRE(one.upload(in, there, 8));
  const auto written = *event::make(on);
  BOOST_REQUIRE(written.record(one));
  BOOST_TEST(!*written.reached());
  BOOST_REQUIRE(other.download(there, out, 8));  // waits for nobody
  BOOST_REQUIRE(other.finish());
  BOOST_TEST((out.span()[0] != std::byte{1}));
  BOOST_REQUIRE(written.finish());
  BOOST_TEST(*written.reached());
}

BOOST_AUTO_TEST_CASE(a_move_leaves_one_owner) {
  queued_runtime api;
  const device_ref on{&api, 1};
  auto one = *device_buffer::make(on, 16);
  auto other = *device_buffer::make(on, 32);
  BOOST_TEST(api.alive() == 2U);
  one = std::move(other);
  BOOST_TEST(api.alive() == 1U);
  BOOST_TEST(one.bytes() == 32U);
  BOOST_TEST(one.device().index == 1U);
  const device_buffer last = std::move(one);
  BOOST_TEST(api.alive() == 1U);
}

BOOST_AUTO_TEST_CASE(devices_do_not_mix) {
  queued_runtime api;
  const device_ref first{&api, 0};
  const device_ref second{&api, 1};
  const auto memory = *device_buffer::make(second, 16);
  const auto pinned = *pinned_buffer::make(first, 16);
  const auto on = *stream::make(first);
  const auto elsewhere = *event::make(second);
  const auto says = [](const std::string& text) {
    return [text](const defect& what) {
      return std::string(what.what()).find(text) != std::string::npos;
    };
  };
  BOOST_CHECK_EXCEPTION(on.clear(memory), defect,
                        says("stream and buffer belong to devices 0 and 1"));
  BOOST_CHECK_EXCEPTION(on.upload(pinned, memory, 1), defect, says("devices 0 and 1"));
  BOOST_CHECK_EXCEPTION(on.download(memory, pinned, 1), defect, says("devices 0 and 1"));
  BOOST_CHECK_EXCEPTION(on.wait(elsewhere), defect, says("devices 0 and 1"));
  BOOST_CHECK_EXCEPTION(elsewhere.record(on), defect, says("devices 1 and 0"));
}

BOOST_AUTO_TEST_CASE(copies_stay_inside_buffers) {
  queued_runtime api;
  const device_ref on{&api, 0};
  const auto memory = *device_buffer::make(on, 16);
  const auto pinned = *pinned_buffer::make(on, 8);
  const auto work = *stream::make(on);
  BOOST_CHECK_THROW(work.upload(pinned, memory, 9), defect);
  BOOST_CHECK_THROW(work.upload(pinned, memory, 8, 9), defect);
  BOOST_CHECK_THROW(work.upload(pinned, memory, 1, ~std::size_t{0}), defect);
  BOOST_CHECK_THROW(work.download(memory, pinned, 9), defect);
  BOOST_CHECK_THROW(work.download(memory, pinned, 8, 9), defect);
  BOOST_CHECK_THROW(device_buffer::make(on, 0), defect);
  BOOST_CHECK_THROW(pinned_buffer::make(on, 0), defect);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_made_is_an_error_with_a_name) {
  queued_runtime api;
  const device_ref on{&api, 1};
  api.fail_after(0);
  const auto memory = device_buffer::make(on, 16);
  BOOST_REQUIRE(!memory);
  BOOST_TEST((memory.error().code == errc::capacity));
  BOOST_TEST(memory.error().message ==
             "CUDA device 1: 16 bytes of its memory: CUDA: out of memory");
  api.fail_after(0);
  BOOST_TEST(pinned_buffer::make(on, 16).error().message ==
             "CUDA device 1: 16 bytes of pinned memory: CUDA: out of memory");
  api.fail_after(0);
  BOOST_TEST(stream::make(on).error().message == "a stream: CUDA: out of memory");
  api.fail_after(0);
  BOOST_TEST(event::make(on).error().message == "an event: CUDA: out of memory");
  api.fail_after(1);
  const auto work = stream::make(on);
  const auto noted = graph::capture(*work, [] { return result<void>{}; });
  BOOST_TEST(graph_exec::make(*noted).error().message == "a graph: CUDA: out of memory");
}

BOOST_AUTO_TEST_SUITE_END()
