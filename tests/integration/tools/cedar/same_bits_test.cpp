// Goal: a topology gives the bits of one process, whatever the cut, the number of processes, the
// transport, the chunks and the steps in flight. Method: `cedar logits` with and without a
// topology; every tensor of the two files is compared byte by byte.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <numeric>

#include "runtime/store/safetensors_reader.hpp"
#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"

using namespace cedar::test;
namespace data = boost::unit_test::data;

namespace {

struct workplace {
  temporary_folder folder;

  /// Runs `cedar logits`, which must succeed, and returns the file it wrote.
  std::filesystem::path logits(const golden_prompt& prompt, const std::string& model,
                               const std::string& out, const std::vector<std::string>& more) {
    const std::filesystem::path file = folder.path() / (out + ".safetensors");
    std::vector<std::string> arguments =
        logits_arguments(folder, prompt, checkpoint_of(model), file);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const finished ran = run(CEDAR_PROGRAM, arguments);
    BOOST_REQUIRE_MESSAGE(ran.code == 0, prompt.name << ": " << ran.errors);
    return file;
  }

  std::string topology(const topology_options& options) {
    return folder.write("topology.yaml", topology_text(options)).string();
  }
};

void compare(const golden_prompt& prompt, const std::string& model,
             const topology_options& topology) {
  workplace work;
  const auto alone = work.logits(prompt, model, "alone", {});
  const auto cut = work.logits(prompt, model, "cut", {"--topology", work.topology(topology)});
  BOOST_TEST(check_same_tensors(cut, alone) >= 4U);
}

const topology_options tiny_12{.layers = 12, .cuts = {5}};
const topology_options tiny_40{.layers = 40, .cuts = {19}};

struct chunking {
  std::uint32_t rows;
  std::uint32_t steps;
};
std::ostream& operator<<(std::ostream& out, const chunking& c) {
  return out << c.rows << " rows a step, " << c.steps << " steps in flight";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(same_bits)

BOOST_DATA_TEST_CASE(of_two_processes_with_tiny_12, data::make(golden_prompts("tiny-12")), prompt) {
  compare(prompt, "tiny-12", tiny_12);
}

BOOST_DATA_TEST_CASE(of_two_processes_with_tiny_40, data::make(golden_prompts("tiny-40")), prompt) {
  compare(prompt, "tiny-40", tiny_40);
}

BOOST_DATA_TEST_CASE(of_two_processes_with_cedar_tiny, data::make(golden_prompts("cedar-tiny")),
                     prompt) {
  compare(prompt, "cedar-tiny", tiny_12);
}

BOOST_DATA_TEST_CASE(over_shared_memory,
                     data::make({std::string("prompt-0017"), std::string("prompt-0257")}), name) {
  topology_options topology = tiny_12;
  topology.shared_memory = true;
  compare(golden_prompt_of("tiny-12", name), "tiny-12", topology);
}

BOOST_AUTO_TEST_CASE(of_a_chain_of_four_processes) {
  topology_options topology = tiny_12;
  topology.cuts = {1, 3, 5};
  compare(golden_prompt_of("tiny-12", "prompt-0100"), "tiny-12", topology);
}

BOOST_AUTO_TEST_CASE(of_two_nodes_in_one_process) {
  topology_options topology = tiny_12;
  topology.loopback = true;
  compare(golden_prompt_of("tiny-12", "prompt-0100"), "tiny-12", topology);
}

BOOST_AUTO_TEST_CASE(of_every_chunking_of_a_prompt) {
  workplace work;
  const golden_prompt prompt = golden_prompt_of("tiny-12", "prompt-0100");
  const auto alone = work.logits(prompt, "tiny-12", "alone", {});
  for (const chunking how : {chunking{16, 1}, {16, 2}, {7, 3}, {7, 1}, {1, 3}}) {
    BOOST_TEST_INFO_SCOPE(how);
    topology_options topology = tiny_12;
    topology.more = "limits: {rows_per_step: " + std::to_string(how.rows) +
                    ", steps_in_flight: " + std::to_string(how.steps) + "}";
    const auto cut = work.logits(prompt, "tiny-12", "cut", {"--topology", work.topology(topology)});
    check_same_tensors(cut, alone);
  }
}

BOOST_AUTO_TEST_CASE(of_bounded_prompts_whose_rows_before_the_boundary_have_no_logits) {
  constexpr std::size_t window = 16;  // of tiny-12
  workplace work;
  const std::vector<std::string> bounded{"--mode", "bounded"};
  for (const std::string name : {"prompt-0017", "prompt-0100"}) {
    const golden_prompt prompt = golden_prompt_of("tiny-12", name);
    const auto alone = work.logits(prompt, "tiny-12", "alone", bounded);
    topology_options topology = tiny_12;
    topology.more = "limits: {rows_per_step: 7, requests: 1}\nmode: bounded";
    const auto cut = work.logits(prompt, "tiny-12", "cut", {"--topology", work.topology(topology)});
    check_same_tensors(cut, alone);
    const auto file = cedar::store::safetensors_reader::open(alone);
    BOOST_REQUIRE(file.has_value());
    const auto bytes = file->bytes(*file->find("prefill.position"));
    BOOST_REQUIRE(bytes.has_value());
    std::vector<std::int32_t> positions(bytes->size() / sizeof(std::int32_t));
    std::memcpy(positions.data(), bytes->data(), bytes->size());
    std::vector<std::int32_t> last(window);
    std::iota(last.begin(), last.end(), static_cast<std::int32_t>(prompt.tokens.size() - window));
    BOOST_TEST(positions == last, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(of_taps_that_travel_between_processes) {
  workplace work;
  const golden_prompt prompt = golden_prompt_of("tiny-12", "prompt-0033");
  const std::vector<std::string> taps{"--taps",
                                      "L0.attn.out,L*.ffn.out,L8.index.topk,final.normed"};
  const auto alone = work.logits(prompt, "tiny-12", "alone", taps);
  std::vector<std::string> through = taps;
  through.insert(through.end(), {"--topology", work.topology(tiny_12)});
  const auto cut = work.logits(prompt, "tiny-12", "cut", through);
  // 15 a step, over the prompt and every forced id, beside the tensors that are always there.
  BOOST_TEST(check_same_tensors(cut, alone) == 5 + 15 * (1 + prompt.forced.size()));
}

BOOST_AUTO_TEST_CASE(of_more_taps_than_an_edge_has_credit_for) {
  workplace work;
  const golden_prompt prompt = golden_prompt_of("tiny-12", "prompt-0033");
  const std::vector<std::string> taps{"--taps", "L*.attn.in,L*.attn.out,L*.ffn.in,L*.ffn.out"};
  const auto alone = work.logits(prompt, "tiny-12", "alone", taps);
  std::vector<std::string> through = taps;
  through.insert(through.end(), {"--topology", work.topology(tiny_12)});
  const auto cut = work.logits(prompt, "tiny-12", "cut", through);
  BOOST_TEST(check_same_tensors(cut, alone) == 5 + 4 * 12 * (1 + prompt.forced.size()));
}

BOOST_AUTO_TEST_SUITE_END()
