// Goal: no tensor of a trace goes uncompared. Method: what the comparisons of layers, drafter,
// embedding and head say they compared, against the names in the files; what is left must be
// recorded twice, or stand below with its reason.
#include <algorithm>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/golden/runtime/stage/drafter_trace.hpp"
#include "tests/golden/runtime/stage/ends_trace.hpp"
#include "tests/golden/runtime/stage/layer_trace.hpp"
#include "tests/support/backends.hpp"

namespace data = boost::unit_test::data;
using namespace cedar;
using test::golden_file;
using names = std::set<std::string>;

namespace {

/// Why nothing here compares a tensor; nothing: no reason.
const char* reason_of(const std::string& name) {
  if (name == "tokens" || name == "decode_tokens") return "what the calls are given";
  if (name.starts_with("prefill.vision.")) return "golden.vision compares every one";
  return nullptr;
}

void add(names& to, const names& more) {
  to.insert(more.begin(), more.end());
}

/// What a block begins with is what the one before it ended with.
void add_recorded_twice(const golden_file& trace, const std::string& call, char kind,
                        std::uint32_t blocks, names& compared) {
  const auto add_pair = [&](const std::string& first, const std::string& second) {
    if (!compared.contains(first)) return;
    BOOST_TEST(std::ranges::equal(trace.bytes(first), trace.bytes(second)),
               second << " is not " << first);
    compared.insert(second);
  };
  for (std::uint32_t block = 0; block + 1 < blocks; ++block) {
    const std::string before = call + kind + std::to_string(block) + ".";
    const std::string after = call + kind + std::to_string(block + 1) + ".";
    add_pair(before + "hc_ffn.pre", after + "in.pre_mix");
    if (kind == 'D') add_pair(before + "out.stream", after + "in.stream");
  }
}

names compared_of(const std::string& checkpoint, const kernels::backend& backend) {
  const test::layer_trace layers(checkpoint, backend);
  const test::drafter_trace drafter(checkpoint, backend);
  const test::ends_trace ends(checkpoint, backend);
  names out;
  for (std::uint32_t layer = 0; layer < layers.layers(); ++layer) {
    add(out, layers.run(layer).compared);
    add(out, layers.run_engram(layer).compared);
  }
  add(out, drafter.run_context().compared);
  for (std::uint32_t block = 0; block < drafter.blocks(); ++block)
    add(out, drafter.run_block(block).compared);
  add(out, drafter.run_drafts().compared);
  add(out, ends.check_embedding());
  add(out, ends.check_first_streams());
  add(out, ends.run_head().compared);
  for (const test::traced_call& call : test::traced_calls(layers.trace())) {
    add_recorded_twice(layers.trace(), call.prefix, 'L', layers.layers(), out);
    if (call.first > 0) add_recorded_twice(layers.trace(), call.prefix, 'D', drafter.blocks(), out);
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_coverage)

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_DATA_TEST_CASE(every_tensor_of_a_trace_is_compared, data::make(test::traced_checkpoints),
                     checkpoint) {
  const auto backend = kernels::make_backend("cpu");
  const names compared = compared_of(checkpoint, *backend);
  const golden_file trace(test::trace_path(checkpoint));
  for (const std::string& name : trace.names())
    BOOST_TEST((compared.contains(name) != (reason_of(name) != nullptr)),
               checkpoint << ": " << name
                          << (compared.contains(name) ? " is compared, but exempt"
                                                      : " is compared by nobody"));
}

BOOST_AUTO_TEST_SUITE_END()
