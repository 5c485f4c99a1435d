// Goal: whichever process of a server dies or stops while it computes a prompt, everything that was
// in the pipeline ends with an error that names it, and the server serves again without restarting
// the others. Method: small chunks, so that the fault falls between those of a long prompt, which
// come in the same steps as the tokens of a stream; the prompt's answer shows that it had none.
#include <signal.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <sstream>

#include "tests/integration/tools/serve/fault_watch.hpp"
#include "tests/integration/tools/serve/faults.hpp"

using namespace cedar::test;

namespace {

const std::vector<victim> victims{{2, "node1", "stage1", SIGKILL},
                                  {2, "node1", "stage1", SIGSTOP},
                                  {3, "node1", "stage1", SIGSTOP},
                                  {3, "node2", "stage2", SIGKILL}};

}  // namespace

BOOST_AUTO_TEST_SUITE(serve_faults_in_prefill)

BOOST_DATA_TEST_CASE(are_named_and_pass, boost::unit_test::data::make(victims), lost) {
  topology_options topology = processes(lost.processes);
  topology.more = small_chunks;
  server one({}, topology);
  const std::string before = one.completion(greedy("The fox", 12));
  const auto pids = pids_of_nodes(one);
  const connector connect = [&] { return std::make_unique<http_client>(one.port); };

  work_under_way work(connect);
  fault_watch watch(connect(), {lost.losses()});
  const auto fault = std::chrono::steady_clock::now();
  ::kill(pids.at(lost.node), lost.signal);
  const auto in_stream = work.check_named({lost.name()});
  BOOST_TEST((in_stream - fault < named_within));
  const auto seen = watch.wait();
  BOOST_TEST(contains(seen.problem, lost.name()), seen.problem);
  BOOST_TEST(seen.counted);
  BOOST_TEST(one.process.wait_errors(lost.name()), one.process.errors());
  std::ostringstream what;
  what << lost;
  tell_times(what.str(), fault, in_stream, seen, std::chrono::steady_clock::now());
  BOOST_TEST(one.get("/health").status == 200);

  wait_ready(one);
  BOOST_TEST(one.completion(greedy("The fox", 12)) == before);
  for (const auto& [node, pid] : pids)
    BOOST_TEST((pid_of(one, node) == pid) == (node != lost.node), node);
  BOOST_TEST(one.wait_metric("cedar_scheduler_requests_running", 0));
  BOOST_TEST(one.metric("cedar_kv_positions") == 0);
  stop(one);
}

BOOST_AUTO_TEST_SUITE_END()
