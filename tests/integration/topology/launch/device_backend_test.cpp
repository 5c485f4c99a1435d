// Goal: a device that this host cannot be is refused by its name, once, before anything is loaded,
// whichever node it is on. Method: topologies with a CUDA device of an index that no host has. The
// test program has no module beside it, so that it refuses for another reason than `cedar` may.
#include "topology/launch/device_backend.hpp"

#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"
#include "topology/launch/cluster.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

/// Why a pipeline of two nodes does not start if device `name` is CUDA's.
std::string refusal(const std::string& name, std::size_t children) {
  std::string text = topology_text({});
  const std::size_t entry = text.find(name + ": {");
  BOOST_REQUIRE(entry != std::string::npos);
  text.replace(text.find("kind: cpu", entry), 9, "kind: cuda, index: 255");
  const temporary_folder folder;
  topology::cluster_options options;
  options.topology = folder.write("t.yaml", text);
  options.model = checkpoint_of("cedar-tiny");
  options.program = CEDAR_PROGRAM;
  std::size_t started = 0;
  options.on_progress = [&](const std::string& what) {
    if (what.find("started as process") != std::string::npos) ++started;
  };
  topology::cluster cluster(options);
  const result<void> outcome = cluster.start();
  BOOST_REQUIRE(!outcome);
  BOOST_TEST((outcome.error().code == errc::refused));
  BOOST_TEST(started == children);
  return outcome.error().message;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(device_backend)

BOOST_AUTO_TEST_CASE(of_the_client_is_refused_before_any_process_starts) {
  const std::string why = refusal("cpu0", 0);
  BOOST_TEST(why.starts_with("device 'cpu0' of kind cuda cannot run here: "), why);
  BOOST_TEST(why.ends_with("(see 'cedar devices'). Write kind: cpu to compute on this host's "
                           "processors"),
             why);
}

BOOST_AUTO_TEST_CASE(of_another_node_is_refused_by_that_node) {
  const std::string why = refusal("cpu1", 1);
  BOOST_TEST(count(why, "node 'node1'") == 1U, why);
  BOOST_TEST(count(why, "device 'cpu1' of kind cuda cannot run here: ") == 1U, why);
  BOOST_TEST(count(why, "Write kind: cpu") == 1U, why);
}

BOOST_AUTO_TEST_SUITE_END()
