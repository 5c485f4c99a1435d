// Goal: the text of a plan says where everything is and what every edge costs.
// Method: a fixed topology; lines that a person looks for must be there, numbers worked out by
// hand.
#include "topology/plan/render.hpp"

#include <boost/test/unit_test.hpp>
#include <regex>

#include "tests/unit/topology/plan/support.hpp"

using namespace cedar::topology;
using namespace cedar::topology::test;

BOOST_AUTO_TEST_SUITE(render)

BOOST_AUTO_TEST_CASE(shows_placement_edges_and_bounds) {
  const std::string text = render_plan(planned(two_nodes));
  BOOST_TEST_MESSAGE(text);
  for (const char* line : {
           "plan of dir/test.yaml: 2 nodes, 2 devices, 6 units, 17 edges",
           "front +127.0.0.1 +this process +scheduler, embedding, engram, encoder +dir/model",
           "back +127.0.0.1 +its own process +decoder, head +dir/model",
           "engram +front +front-cpu \\(cpu\\) +tables of layers 1, 4",
           "encoder +front +front-cpu \\(cpu\\) +layers 0-5",
           "100 rows of 4 requests",
           // bytes of a full step, credit in bytes and messages, formula
           "encoder -> decoder activation +between nodes +1,041 +4,260 +104,196 +312,588 +3 +1,041 "
           "a row \\+ 24 "
           "a request",
           "engram -> encoder engram_rows of layer 1 +in memory +198 +888 +19,896",
           "head -> scheduler proposal +between nodes +20 +80 +2,000 +2,463,600 +3 +20 a wanted "
           "row",
           "3 more edges carry taps",
           "mode +exact",
           "100 rows a step, 4 requests, 1000 positions a request, 3 steps in flight",
           "prompts +100 rows a step while answers are generated",
           "kv +4,096 positions of all requests together, given out by 128",
           "ucx, transports tcp, self on lo",
           "start 20000 ms, step 30000 ms, lost after 1000 ms of silence \\(a heartbeat every 200 "
           "ms\\)",
           "a fresh secret for every run, loopback only",
           "no deadlock",
           "KV of 4 requests of 1000 positions",
           "a decode row is at position 999, a decode step has 4 of them",
       }) {
    BOOST_TEST(std::regex_search(text, std::regex(line)), line);
  }
  // step tables to decoder and head: 544 each; activation; proposal; verdicts to decoder and head:
  // 52 each.
  BOOST_TEST(std::regex_search(
      text,
      std::regex("[0-9,]+ bytes of a decode step cross between nodes, 107,388 of a full step")));
}

BOOST_AUTO_TEST_CASE(shows_threads_where_there_are_several) {
  const std::string text = render_plan(
      planned(with(two_nodes, "back-cpu: {node: back}", "back-cpu: {node: back, threads: 4}")));
  BOOST_TEST(std::regex_search(text, std::regex("head +back +back-cpu \\(cpu, 4 threads\\)")));
  BOOST_TEST(std::regex_search(text, std::regex("encoder +front +front-cpu \\(cpu\\)")));
  const std::string placed =
      render_plan(planned(with(two_nodes, "back-cpu: {node: back}",
                               "back-cpu: {node: back, cores: '0-2,5', numa: 1, nice: 4}")));
  BOOST_TEST(render_plan(planned(with(two_nodes, "back-cpu: {node: back}",
                                      "back-cpu: {node: back, kind: cuda, index: 3}")))
                 .find("back-cpu (cuda 3)") != std::string::npos);
  BOOST_TEST(placed.find("back-cpu (cpu, 4 threads, cores 0-2,5, numa 1, nice 4)") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(has_neither_trailing_blanks_nor_a_missing_end) {
  const std::string text = render_plan(planned(two_nodes));
  BOOST_TEST(text.find(" \n") == std::string::npos);
  BOOST_TEST(text.back() == '\n');
}

BOOST_AUTO_TEST_SUITE_END()
