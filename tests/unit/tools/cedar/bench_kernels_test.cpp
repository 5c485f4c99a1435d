// Goal: every operation of the interface is measured, at shapes that it accepts, against the
// ceiling that binds. Method: all cases of a small model run once on a watched backend, and what it
// saw is compared with the interface's own text; ceilings by numbers made up.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "kernels/base/check.hpp"
#include "kernels/registry/registry.hpp"
#include "tools/cedar/bench_kernel_run.hpp"
#include "tools/cedar/bench_launches.hpp"
#include "tools/cedar/operation_bytes.hpp"
#include "tools/cedar/synthetic_layers.hpp"
#include "tools/cedar/timed_backend.hpp"

using namespace cedar;
using namespace cedar::tools;

namespace {

model::model_config small() {
  const auto config = model::parse_config(CEDAR_TEST_DATA "/golden/tiny-vision");
  BOOST_TEST_REQUIRE(config.has_value());
  return *config;
}

/// Functions of kernels::backend, read from its header.
std::set<std::string> operations_of_the_interface() {
  std::ifstream in(CEDAR_SOURCE_DIR "/kernels/ops/backend.hpp");
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::regex function("virtual void do_([a-z0-9_]+)\\(");
  std::set<std::string> out;
  for (std::sregex_iterator at(text.begin(), text.end(), function), end; at != end; ++at)
    out.insert((*at)[1].str());
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bench_kernels)

BOOST_AUTO_TEST_CASE(every_operation_has_a_case) {
  const auto cpu = kernels::make_backend("cpu");
  BOOST_TEST_REQUIRE(cpu != nullptr);
  const timed_backend watched(*cpu);
  bench_memory memory(std::size_t{16} << 20);
  std::set<std::string> names;
  std::set<std::string> called;
  for (const kernel_case& each : kernel_cases(small(), {{1, 5}, {64, 300}})) {
    BOOST_TEST(names.insert(each.name()).second, "twice: " << each.name());
    memory.reset();
    const kernel_call call = each.prepare(memory, *cpu);
    BOOST_TEST(call.bytes > 0, each.name());
    call.call(watched);
    called.insert(each.operation);
  }
  for (const std::string& operation : operations_of_the_interface()) {
    BOOST_TEST(called.count(operation) == 1U, "no case measures " << operation);
    BOOST_TEST(watched.operations().count(operation) == 1U,
               "a case says, but is not, " << operation);
  }
}

BOOST_AUTO_TEST_CASE(cases_count_the_bytes_of_their_calls) {
  const auto cpu = kernels::make_backend("cpu");
  bench_memory memory(std::size_t{16} << 20);
  for (const kernel_case& each : kernel_cases(small(), {{1, 5}, {64}})) {
    memory.reset();
    const kernel_call call = each.prepare(memory, *cpu);
    timed_backend watched(*cpu);
    call.call(watched);
    if (watched.operations().empty()) continue;  // a choice: no operation of a backend
    const double counted = watched.operations().begin()->second.bytes;
    // Small scales, weights of norms and coefficients are counted by one and not by the other.
    BOOST_TEST(std::abs(call.bytes - counted) < 0.2 * counted + 64,
               each.name() << ": " << call.bytes << " and " << counted);
  }
}

BOOST_AUTO_TEST_CASE(the_slower_ceiling_binds) {
  const kernel_call streaming{1e9, 1e9, true, {}};
  BOOST_TEST(binding_of(streaming, 1e9, 1e10).name == "memory");
  BOOST_TEST(binding_of(streaming, 1e9, 1e10).seconds == 1);
  BOOST_TEST(binding_of(streaming, 1e9, 1e8).name == "multiply-add");
  BOOST_TEST(binding_of(streaming, 1e9, 1e8).seconds == 10);
  const kernel_call cached{1e9, 1e9, false, {}};
  BOOST_TEST(binding_of(cached, 1, 1e9).name == "multiply-add");
  const kernel_call neither{1e9, 0, false, {}};
  BOOST_TEST(binding_of(neither, 1e9, 0).name == "cache");
  BOOST_TEST(binding_of(neither, 1e9, 0).seconds == 0);
}

BOOST_AUTO_TEST_CASE(memory_comes_round_with_values_that_are_numbers) {
  stream_memory codes(std::size_t{4} << 20, stream_contents::codes);
  const std::byte* const first = codes.next(1000);
  BOOST_TEST(codes.next(1000) == first + 4096);
  BOOST_TEST(codes.next(codes.bytes()) == first);
  for (std::size_t i = 0; i < codes.bytes(); ++i)
    BOOST_REQUIRE(std::to_integer<unsigned>(first[i] & std::byte{0x70}) == 0x30U);
  BOOST_CHECK_THROW(codes.next(codes.bytes() + 1), defect);
  stream_memory scales(4096, stream_contents::scales);
  std::set<unsigned> seen;
  for (std::size_t i = 0; i < 4096; ++i)
    seen.insert(std::to_integer<unsigned>(scales.next(4096)[i]));
  BOOST_TEST((seen == std::set<unsigned>{118, 119, 120, 121}));
}

BOOST_AUTO_TEST_CASE(a_measured_case_reports_its_share) {
  const auto cpu = kernels::make_backend("cpu");
  bench_memory memory(std::size_t{16} << 20);
  ceilings limits(memory.stream(), 1, true);
  BOOST_TEST(limits.best_read() > 0);
  BOOST_TEST(limits.best_fma() > 0);
  for (const kernel_case& each : kernel_cases(small(), {{1}, {64}})) {
    if (each.operation != "linear_fp8" && each.operation != "gelu") continue;
    const bench_row row = measure(each, {memory, limits, *cpu, nullptr, 1, 0.001, 3});
    BOOST_TEST(row.name == each.name());
    BOOST_TEST(row.time_us.count >= 3U);
    BOOST_TEST(row.time_us.low > 0);
    BOOST_TEST(row.numbers.at("GBps") > 0);
    BOOST_TEST(row.numbers.count("share") == (each.operation == "gelu" ? 0U : 1U));
    BOOST_TEST((row.words.at("bound") == "cache") == (each.operation == "gelu"));
  }
}

BOOST_AUTO_TEST_CASE(layers_of_every_kind_run_and_forget) {
  const auto cpu = kernels::make_backend("cpu");
  const auto config = model::parse_config(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny");
  BOOST_TEST_REQUIRE(config.has_value());
  synthetic_layers layers(*config, config->routed_experts, 512);
  std::uint32_t counted = 0;
  for (const std::uint32_t context : {64U, 512U}) {
    BOOST_TEST_REQUIRE(layers.fill(*cpu, context - 1).has_value());
    for (const layer_kind& kind : layers.kinds()) {
      timed_backend watched(*cpu);
      for (int i = 0; i < 2; ++i)
        BOOST_TEST(layers.run(watched, kind.layer).has_value(), kind.name);
      BOOST_TEST(layers.positions() == context - 1);
      BOOST_TEST(watched.operations().at("attention").calls == 2U);
      const bool selects = kind.name.starts_with("full") || kind.name.starts_with("reindex");
      BOOST_TEST((watched.operations().count("index_scores") == 1U) == selects, kind.name);
      // All bytes that it must read pass through operations, which read and write more besides.
      double seen = 0;
      for (const auto& [name, time] : watched.operations()) seen += time.bytes / 2;
      BOOST_TEST(layers.bytes_to_read(kind.layer) < seen * 1.001, kind.name);
      BOOST_TEST(layers.bytes_to_read(kind.layer) > 0.5 * seen, kind.name);
      counted += context == 64 ? kind.count : 0;
    }
  }
  BOOST_TEST(counted == config->layers);
}

/// A layer's kernels may not depend on how many rows it has, nor on how many experts they chose;
/// scores of index keys do, and are a kernel a row.
BOOST_AUTO_TEST_CASE(kernels_of_a_layer_are_counted) {
  const auto cpu = kernels::make_backend("cpu");
  const auto config = model::parse_config(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny");
  BOOST_TEST_REQUIRE(config.has_value());
  const auto counted = count_launches(*config, *cpu, {1, 20});
  BOOST_TEST_REQUIRE(counted.has_value());
  std::set<std::string> kinds;
  for (std::size_t i = 0; i < counted->size(); i += 2) {
    const layer_launches& one = (*counted)[i];
    const layer_launches& many = (*counted)[i + 1];
    kinds.insert(one.kind);
    BOOST_TEST(one.kind == many.kind);
    BOOST_TEST((one.rows == 1 && many.rows == 20));
    const auto scores = [](const layer_launches& of) {
      const auto found = of.calls.find("index_scores");
      return found == of.calls.end() ? 0U : found->second;
    };
    BOOST_TEST(one.kernels() - scores(one) == many.kernels() - scores(many), one.kind);
    BOOST_TEST(scores(many) == 20 * scores(one), one.kind);
    BOOST_TEST(one.calls.at("hc_transition") == 2U);
    if (one.kind.starts_with("reuse")) BOOST_TEST(one.kernels() == 25U);
  }
  BOOST_TEST(kinds.size() == counted->size() / 2);
}

BOOST_AUTO_TEST_SUITE_END()
