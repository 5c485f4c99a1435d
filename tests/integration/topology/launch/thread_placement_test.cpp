// Goal: the threads of a device run where its topology says, and a host that cannot give that says
// why. Method: a cluster whose second node names cores and nice values, seen in /proc; plans
// against this host.
#include "topology/launch/thread_placement.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "runtime/model/config.hpp"
#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"
#include "topology/launch/cluster.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

constexpr std::string_view back_device = "cpu1: {node: node1, kind: cpu";

/// The two-process topology with `rest` in the entry of its second device.
std::string with_back(const std::string& rest) {
  std::string text = topology_text({.model = checkpoint_of("cedar-tiny").string()});
  const std::size_t at = text.find(back_device);
  BOOST_REQUIRE(at != std::string::npos);
  return text.insert(at + back_device.size(), ", " + rest);
}

result<kernels::thread_placement> placement_of_back(const std::string& rest) {
  const auto config = model::parse_config(checkpoint_of("cedar-tiny"));
  BOOST_REQUIRE(config);
  const auto planned =
      topology::make_plan(*topology::parse_document(with_back(rest), "t.yaml"), *config);
  BOOST_REQUIRE(planned.has_value());
  return topology::placement_of(*planned, planned->devices().back());
}

std::string refusal(const std::string& rest) {
  const auto placed = placement_of_back(rest);
  return placed ? "" : placed.error().message;
}

std::string list_of(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (const std::uint32_t each : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(each);
  return text;
}

/// Nice values of the threads of a process.
std::vector<int> nice_values(pid_t process) {
  std::vector<int> out;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task"))
    out.push_back(
        getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoul(entry.path().filename()))));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(thread_placement)

BOOST_AUTO_TEST_CASE(is_what_the_device_says) {
  const auto usable = kernels::usable_processors();
  const auto placed = placement_of_back("cores: " + std::to_string(usable.front()) + ", nice: 4");
  BOOST_REQUIRE(placed);
  BOOST_TEST((*placed == kernels::thread_placement{{usable.front()}, {}, 4}));
  BOOST_TEST((*placement_of_back("nice: 4") == kernels::thread_placement{{}, {}, 4}));
}

BOOST_AUTO_TEST_CASE(is_refused_where_the_host_has_no_such_thing) {
  const std::string usable = list_of(kernels::usable_processors());
  BOOST_TEST(refusal("cores: 1023") ==
             "device 'cpu1' is to run on core 1023, but this process may use " + usable + " only");
  BOOST_TEST(refusal("numa: 1023") ==
             "device 'cpu1' is to use NUMA node 1023, which this host does not have (see 'lscpu')");
}

BOOST_AUTO_TEST_CASE(holds_for_the_threads_that_compute) {
  temporary_folder folder;
  topology::cluster_options options;
  options.topology = folder.write(
      "t.yaml",
      with_back("cores: " + std::to_string(kernels::usable_processors().back()) + ", nice: 7"));
  options.model = checkpoint_of("cedar-tiny");
  options.program = CEDAR_PROGRAM;
  topology::cluster cluster(options);
  const result<void> started = cluster.start();
  BOOST_REQUIRE_MESSAGE(started.has_value(), (started ? "" : started.error().message));
  session::generation_request request;
  request.prompt = {0, 100, 200};
  request.new_tokens_max = 2;
  BOOST_REQUIRE(cluster.generate({request}, {}));
  const auto children = children_of(::getpid());
  BOOST_REQUIRE(children.size() == 1U);
  const std::vector<int> nice = nice_values(children.front());
  // Those that compute are the stage's and the head's, the others have what they were started with.
  BOOST_TEST(std::ranges::count(nice, 7) >= 2);
  BOOST_TEST(std::ranges::count(nice, getpriority(PRIO_PROCESS, 0)) >= 1);
}

BOOST_AUTO_TEST_SUITE_END()
