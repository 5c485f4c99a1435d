// Goal: /metrics says what drafting does, and nothing of it where nobody drafts, and what caches
// hold. Method: the text of made-up states.
#include "runtime/http/metrics.hpp"

#include <boost/test/unit_test.hpp>

using namespace cedar;

namespace {

bool has(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(metrics)

BOOST_AUTO_TEST_CASE(say_what_drafting_chose_and_gained) {
  http::metrics counts;
  session::service_status state;
  BOOST_TEST(counts.text(state, {}).find("cedar_draft_lengths_total{") == std::string::npos);
  state.load.policy = session::draft_policy_report{{4, 0, 7}, 3.5, 2, 3, 1.5};
  counts.text(state, {});
  state.load.policy->lengths = {4, 1, 9};
  const std::string text = counts.text(state, {});
  BOOST_TEST(has(text, R"(cedar_draft_lengths_total{verified="0"} 4)"), text);
  BOOST_TEST(has(text, R"(cedar_draft_lengths_total{verified="1"} 1)"), text);
  BOOST_TEST(has(text, R"(cedar_draft_lengths_total{verified="2"} 9)"), text);
  BOOST_TEST(has(text, R"(cedar_draft_plain_seconds_total{kind="predicted"} 3.5)"), text);
  BOOST_TEST(has(text, R"(cedar_draft_seconds_total{kind="predicted"} 2)"), text);
  BOOST_TEST(has(text, R"(cedar_draft_plain_seconds_total{kind="realised"} 3)"), text);
  BOOST_TEST(has(text, R"(cedar_draft_seconds_total{kind="realised"} 1.5)"), text);
}

BOOST_AUTO_TEST_CASE(say_what_every_unit_holds) {
  http::metrics counts;
  session::service_status state;
  state.units = {{"encoder", "front", true, {4000, 3000, 200}}, {"head", "back", false}};
  const std::string text = counts.text(state, {});
  const auto line = [](const char* kind, const char* place, const char* bytes) {
    return "cedar_cache_bytes{kind=\"" + std::string(kind) + "\"," + place + "} " + bytes;
  };
  const char* encoder = R"(node="front",unit="encoder")";
  BOOST_TEST(has(text, line("pages", encoder, "4000")), text);
  BOOST_TEST(has(text, line("kept_pages", encoder, "3000")), text);
  BOOST_TEST(has(text, line("rings", encoder, "200")), text);
  BOOST_TEST(has(text, line("pages", R"(node="back",unit="head")", "0")), text);
  state.units[0].caches = {};
  BOOST_TEST(has(counts.text(state, {}), line("pages", encoder, "0")));
}

BOOST_AUTO_TEST_CASE(say_how_long_steps_waited_for_engram) {
  http::metrics counts;
  session::service_status state;
  state.units = {{"shard", "one", true, {}, {600, 0, 0, 0}},
                 {"encoder", "two", true, {}, {0, 9, 2, 2'500'000}},
                 {"head", "two", true}};
  counts.text(state, {});
  state.units[1].engram = {0, 10, 3, 4'500'000};
  const std::string text = counts.text(state, {});
  BOOST_TEST(has(text, R"(cedar_engram_rows_total{node="one",unit="shard"} 600)"), text);
  BOOST_TEST(has(text, R"(cedar_engram_steps_total{node="two",unit="encoder"} 10)"), text);
  BOOST_TEST(has(text, R"(cedar_engram_late_steps_total{node="two",unit="encoder"} 3)"), text);
  BOOST_TEST(has(text, R"(cedar_engram_wait_seconds_total{node="two",unit="encoder"} 4.5)"), text);
  BOOST_TEST(text.find(R"(cedar_engram_steps_total{node="one")") == std::string::npos);
  BOOST_TEST(text.find(R"(cedar_engram_rows_total{node="two")") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(say_how_links_were_at_the_start) {
  http::metrics counts;
  session::service_status state;
  BOOST_TEST(counts.text(state, {}).find("cedar_link_round_trip_seconds{") == std::string::npos);
  state.links = {{"front", "back", 0.25, 1e6}, {"back", "front", 0.25, 2e6}};
  const std::string text = counts.text(state, {});
  const char* there = R"({node="front",peer="back"} )";
  const char* back = R"({node="back",peer="front"} )";
  BOOST_TEST(has(text, "cedar_link_round_trip_seconds" + std::string(there) + "0.25"), text);
  BOOST_TEST(has(text, "cedar_link_bytes_per_second" + std::string(there) + "1000000"), text);
  BOOST_TEST(has(text, "cedar_link_bytes_per_second" + std::string(back) + "2000000"), text);
}

BOOST_AUTO_TEST_SUITE_END()
