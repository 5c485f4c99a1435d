// Goal: any number of stages on a device and of devices on a node give the bits of one process.
// Method: `cedar logits` over placements that no chain of nodes has; every tensor is compared with
// the local engine's.
#include <boost/test/unit_test.hpp>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"

using namespace cedar::test;

namespace {

/// Devices, by stage (layers 0-1, 2-3, 4-5, 6-11), then the head's; device cpuN is node N's.
struct placement {
  std::vector<std::string> stages;
  std::string head;
};

std::string topology_of(const placement& where) {
  const char* const layers[] = {"0-1", "2-3", "4-5", "6-11"};
  std::string text =
      "cedar: 1\n"
      "nodes: {node0: {}, node1: {}, node2: {}}\n"
      "devices:\n"
      "  cpu0: {node: node0}\n  also0: {node: node0}\n  cpu1: {node: node1}\n"
      "  cpu2: {node: node2}\n"
      "units:\n  scheduler: {node: node0}\n  embedding: {device: cpu0}\n"
      "  engram: {device: cpu2}\n  stages:\n";
  for (std::size_t i = 0; i < where.stages.size(); ++i)
    text += "    - {name: part" + std::to_string(i) + ", layers: " + layers[i] +
            ", device: " + where.stages[i] + "}\n";
  return text + "  head: {device: " + where.head + "}\n";
}

void compare(const placement& where) {
  const temporary_folder folder;
  const golden_prompt prompt = golden_prompt_of("tiny-12", "prompt-0100");
  const auto logits = [&](const std::string& out, const std::vector<std::string>& more) {
    const std::filesystem::path file = folder.path() / out;
    auto arguments = logits_arguments(folder, prompt, checkpoint_of("tiny-12"), file);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const finished ran = run(CEDAR_PROGRAM, arguments);
    BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
    return file;
  };
  const auto topology = folder.write("t.yaml", topology_of(where));
  BOOST_TEST(check_same_tensors(logits("placed", {"--topology", topology.string()}),
                                logits("alone", {})) >= 4U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stages)

BOOST_AUTO_TEST_CASE(two_on_one_device_of_three_processes) {
  compare({{"cpu0", "cpu1", "cpu1", "cpu2"}, "cpu2"});
}

BOOST_AUTO_TEST_CASE(that_come_back_to_a_node_they_left) {
  compare({{"cpu1", "cpu0", "cpu1", "cpu2"}, "also0"});
}

BOOST_AUTO_TEST_CASE(on_two_devices_of_one_node) {
  compare({{"cpu0", "also0", "cpu0", "cpu1"}, "cpu1"});
}

BOOST_AUTO_TEST_SUITE_END()
