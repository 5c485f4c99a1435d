// Goal: a trace keeps its bound, costs nothing when off, and becomes JSON that viewers read.
// Method: small recordings; the JSON is parsed again.
#include "runtime/base/trace.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <thread>

using namespace cedar;
using nlohmann::json;

BOOST_AUTO_TEST_SUITE(trace)

BOOST_AUTO_TEST_CASE(events_beyond_the_bound_are_counted) {
  trace_recorder recorder(2);
  for (std::uint64_t step = 1; step <= 5; ++step)
    recorder.add({trace_kind::compute, "head", step, 0, 1, 0, 1});
  BOOST_TEST(recorder.dropped() == 3U);
  const auto events = recorder.take();
  BOOST_REQUIRE_EQUAL(events.size(), 2U);
  BOOST_TEST(events[1].step == 2U);
  BOOST_TEST(recorder.take().empty());
  recorder.add({trace_kind::wait, "head", 6, 0, 1, 0, 1});  // taking made room
  BOOST_TEST(recorder.take().size() == 1U);
}

BOOST_AUTO_TEST_CASE(off_it_keeps_nothing) {
  trace_recorder recorder(0);
  BOOST_TEST(!recorder.on());
  recorder.add({});
  BOOST_TEST(recorder.take().empty());
  BOOST_TEST(recorder.dropped() == 0U);
}

BOOST_AUTO_TEST_CASE(threads_may_record_together) {
  trace_recorder recorder(10000);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) recorder.add({trace_kind::compute, "unit", 1, 0, 1, 0, 1});
    });
  threads.clear();
  BOOST_TEST(recorder.take().size() == 4000U);
}

BOOST_AUTO_TEST_CASE(processes_and_tracks_become_named_rows_of_the_viewer) {
  const std::string text =
      to_chrome_json({{"front",
                       {{trace_kind::compute, "embedding", 1, 1000, 20, 0, 4},
                        {trace_kind::message, "a -> b \"x\"", 1, 1020, 5, 640, 0},
                        {trace_kind::compute, "embedding", 2, 1100, 25, 0, 0}}},
                      {"back", {{trace_kind::wait, "head", 1, 990, 7, 0, 4}}}});
  const json events = json::parse(text).at("traceEvents");
  json spans = json::array();
  std::map<std::pair<int, int>, std::string> names;
  for (const json& event : events) {
    if (event.at("ph") == "X")
      spans.push_back(event);
    else
      names[{event.at("pid"), event.at("tid")}] = event.at("args").at("name");
  }
  BOOST_REQUIRE_EQUAL(spans.size(), 4U);
  const auto track = [&](const json& span) { return names.at({span.at("pid"), span.at("tid")}); };
  BOOST_TEST((names.at({1, 0}) == "front"));
  BOOST_TEST((names.at({2, 0}) == "back"));
  BOOST_TEST(track(spans[0]) == "embedding");
  BOOST_TEST(track(spans[1]) == "a -> b \"x\"");
  BOOST_TEST(track(spans[3]) == "head");
  BOOST_TEST((spans[0].at("tid") == spans[2].at("tid")));
  BOOST_TEST(spans[0].at("ts") == 10);  // the earliest event of all processes is the origin
  BOOST_TEST(spans[3].at("ts") == 0);
  BOOST_TEST(spans[1].at("dur") == 5);
  BOOST_TEST(spans[1].at("args").at("bytes") == 640);
  BOOST_TEST(!spans[0].at("args").contains("bytes"));
  BOOST_TEST(spans[0].at("args").at("rows") == 4);
  BOOST_TEST(spans[2].at("args").at("step") == 2);
  BOOST_TEST(spans[3].at("cat") == "wait");
}

BOOST_AUTO_TEST_CASE(what_passed_edges_is_counted_even_when_nothing_is_recorded) {
  trace_recorder off(0);
  BOOST_TEST(off.totals().empty());
  off.count("b", 10, 3);
  off.count("a", 5, 0);
  off.count("b", 20, 4);
  const auto totals = off.totals();
  BOOST_REQUIRE_EQUAL(totals.size(), 2U);
  BOOST_TEST(totals[0].edge == "a");
  BOOST_TEST(totals[0].messages == 1U);
  BOOST_TEST(totals[1].edge == "b");
  BOOST_TEST(totals[1].messages == 2U);
  BOOST_TEST(totals[1].bytes == 30U);
  BOOST_TEST(totals[1].waited_us == 7U);
  BOOST_TEST(off.take().empty());
}

BOOST_AUTO_TEST_CASE(what_units_have_to_do_with_engram_adds_up) {
  trace_recorder off(0);
  off.count("head", engram_counts{});
  off.count("encoder", {0, 1, 0, 0});
  off.count("shard", {48, 0, 0, 0});
  off.count("encoder", {0, 1, 1, 70});
  const auto engram = off.engram();
  BOOST_REQUIRE_EQUAL(engram.size(), 2U);
  BOOST_TEST((engram.at("encoder") == engram_counts{0, 2, 1, 70}));
  BOOST_TEST((engram.at("shard") == engram_counts{48, 0, 0, 0}));
  BOOST_TEST((engram.at("encoder") - engram_counts{0, 1, 0, 20} == engram_counts{0, 1, 1, 50}));
}

BOOST_AUTO_TEST_CASE(nothing_recorded_is_still_json) {
  BOOST_TEST(json::parse(to_chrome_json({})).at("traceEvents").empty());
  BOOST_TEST(json::parse(to_chrome_json({{"front", {}}})).at("traceEvents").size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
