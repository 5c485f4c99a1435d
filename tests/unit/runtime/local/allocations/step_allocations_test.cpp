// Goal: a step that computes as many rows as steps before it allocates nothing from its first
// kernel to its last, but for the message from the layers to the head. Method: the single-process
// engine on tiny-12 decodes requests, once to warm up and once counted; a backend in between notes
// the allocations inside every kernel and between kernels.
#include <boost/test/unit_test.hpp>
#include <string>

#include "kernels/cpu/cpu_backend.hpp"
#include "runtime/local/local_engine.hpp"
#include "tests/unit/runtime/local/allocations/counted_backend.hpp"
#include "tests/unit/runtime/local/allocations/counting_allocator.hpp"

using namespace cedar;
using test::allocations;

namespace {

const stage::model_source& tiny_model() {
  static const auto opened = stage::model_source::open(CEDAR_TEST_DATA "/golden/tiny-12");
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
  return **opened;
}

session::generation_request request_of(std::uint32_t number, std::uint32_t tokens) {
  session::generation_request out;
  for (std::uint32_t i = 0; i < 5 + number; ++i)
    out.prompt.push_back(static_cast<token_id>(3 + (number * 71 + i * 13) % 500));
  out.new_tokens_max = tokens;
  out.ignore_eos = true;
  return out;
}

struct step_counts {
  std::uint64_t whole = 0;  ///< of a step, from its table to its verdict
  std::uint64_t inside = 0;  ///< in kernels
  std::uint64_t between = 0;  ///< between kernels of the layers, and of the head
  std::uint64_t message = 0;  ///< between the layers' last kernel and the head's first
  std::string where;  ///< the kernels around the first that is not allowed
};

step_counts count(const test::call_log& log, std::uint64_t whole) {
  step_counts out;
  out.whole = whole;
  BOOST_REQUIRE_GT(log.calls.size(), 3U);
  for (std::size_t i = 0; i < log.calls.size(); ++i) {
    const test::counted_call& call = log.calls[i];
    out.inside += call.after - call.before;
    if (call.after != call.before && out.where.empty()) out.where = call.operation;
    if (i == 0) continue;
    const std::uint64_t gap = call.before - log.calls[i - 1].after;
    if (i + 2 == log.calls.size()) {  // the head's are rms_norm and linear_f32
      out.message = gap;
      continue;
    }
    out.between += gap;
    if (gap != 0 && out.where.empty())
      out.where = std::string(log.calls[i - 1].operation) + " ... " + call.operation;
  }
  return out;
}

/// Runs the requests to their end; calls see(counts) after each step that only decodes.
template <class See>
void generate(local::local_engine& engine, test::call_log& log, std::uint32_t requests,
              std::uint32_t tokens, const See& see) {
  session::step_scheduler scheduler(engine.scheduler_limits(requests));
  std::vector<session::generation_request> all;
  for (std::uint32_t i = 0; i < requests; ++i) all.push_back(request_of(i, tokens));
  BOOST_REQUIRE(scheduler.submit(all));
  while (const auto table = scheduler.next_step()) {
    log.clear();
    const std::uint64_t before = allocations();
    const auto proposal = engine.run(*table, {});
    BOOST_REQUIRE(proposal);
    const std::uint64_t whole = allocations() - before;
    const auto outcome = scheduler.accept(*proposal);
    BOOST_REQUIRE(outcome);
    engine.apply(outcome->verdict);
    if (table->rows_count() == requests && table->logits_count() == requests)
      see(count(log, whole));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(local_allocations)

BOOST_AUTO_TEST_CASE(the_counter_counts) {
  const std::uint64_t before = allocations();
  const auto number = std::make_unique<int>(1);
  const kernels::buffer aligned(100);
  BOOST_TEST(allocations() - before == 2U);
  BOOST_TEST(*number == 1);
}

BOOST_AUTO_TEST_CASE(a_step_computes_without_allocating) {
  for (const auto& [requests, threads] : {std::pair(1U, 1U), {3U, 1U}, {3U, 2U}}) {
    const auto cpu = kernels::make_cpu_backend(threads, threads == 1 ? kernels::cpu_grain : 1);
    test::call_log log;
    const auto counted = test::make_counted_backend(*cpu, log);
    local::engine_options options;
    options.requests_max = requests;
    auto engine = local::local_engine::open(tiny_model(), *counted, options);
    BOOST_REQUIRE(engine);
    generate(**engine, log, requests, 200, [](const step_counts&) {});
    std::uint32_t steps = 0;
    std::uint64_t whole = 0;
    generate(**engine, log, requests, 150, [&](const step_counts& counts) {
      ++steps;
      BOOST_TEST(counts.inside == 0U, "in kernels: " << counts.inside << " at " << counts.where);
      BOOST_TEST(counts.between == 0U, "between: " << counts.between << " at " << counts.where);
      BOOST_TEST(counts.message <= 5U);
      BOOST_TEST(counts.whole <= 60U);
      whole = std::max(whole, counts.whole);
    });
    BOOST_TEST_MESSAGE("most allocations of a step of " << requests << ": " << whole);
    BOOST_TEST(steps > 100U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
