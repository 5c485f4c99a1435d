// Goal: a watched backend computes what the other one does and counts calls, time and bytes, of
// operations and of what lies between them. Method: the reference below it, and a clock that the
// test moves.
#include "tools/cedar/timed_backend.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/buffer.hpp"
#include "kernels/registry/registry.hpp"
#include "tools/cedar/bench_breakdown.hpp"

using namespace cedar;
using namespace cedar::kernels;
using namespace cedar::tools;

namespace {

/// Every reading is a millisecond after the last one, and what was waited.
struct moved_clock {
  double now = 0;
  double read() { return now += 0.001; }
};

struct fixture {
  std::unique_ptr<backend> other = make_backend("reference");
  moved_clock clock;
  timed_backend watched{*other, [this] { return clock.read(); }};
  matrix_buffer<bf16> a{2, 8};
  matrix_buffer<bf16> b{2, 8};
  matrix_buffer<bf16> y{2, 8};

  void add() { watched.add({y.view(), a.view(), b.view()}); }
  void gelu() { watched.gelu({y.view(), a.view()}); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(watching_a_backend, fixture)

BOOST_AUTO_TEST_CASE(results_are_those_of_the_other) {
  for (std::size_t i = 0; i < 16; ++i) {
    a.span()[i] = to_bf16(static_cast<float>(i));
    b.span()[i] = to_bf16(0.5F);
  }
  matrix_buffer<bf16> wanted(2, 8);
  other->add({wanted.view(), a.view(), b.view()});
  add();
  for (std::size_t i = 0; i < 16; ++i) BOOST_TEST(y.span()[i].bits == wanted.span()[i].bits);
  BOOST_TEST(watched.name() == "reference");
}

BOOST_AUTO_TEST_CASE(operations_and_gaps_are_counted) {
  add();
  clock.now += 1;
  add();
  clock.now += 2;
  gelu();
  const auto& operations = watched.operations();
  BOOST_TEST_REQUIRE(operations.size() == 2U);
  const double tolerance = 1e-9;
  BOOST_TEST(operations.at("add").calls == 2U);
  BOOST_TEST(std::abs(operations.at("add").seconds - 0.002) < tolerance);
  BOOST_TEST(operations.at("add").bytes == 2 * 3 * 32.0);
  BOOST_TEST(operations.at("gelu").bytes == 2 * 32.0);
  BOOST_TEST(std::abs(watched.seconds_in_operations() - 0.003) < tolerance);
  const auto& between = watched.between();
  BOOST_TEST_REQUIRE(between.size() == 2U);
  BOOST_TEST(std::abs(between.at({"add", "add"}).seconds - 1.001) < tolerance);
  BOOST_TEST(between.at({"add", "gelu"}).calls == 1U);
  BOOST_TEST(std::abs(between.at({"add", "gelu"}).seconds - 2.001) < tolerance);
  BOOST_TEST(by_time(between).front().first == "add -> gelu");
  BOOST_TEST(by_time(operations).front().first == "add");
}

BOOST_AUTO_TEST_CASE(a_pause_is_no_gap_and_a_reset_forgets) {
  add();
  watched.pause();
  clock.now += 5;
  add();
  BOOST_TEST(watched.between().empty());
  BOOST_TEST(watched.operations().at("add").calls == 2U);
  watched.reset();
  BOOST_TEST(watched.operations().empty());
  gelu();
  BOOST_TEST(watched.between().empty());
}

BOOST_AUTO_TEST_CASE(a_breakdown_leaves_nothing_out) {
  add();
  clock.now += 1;
  gelu();
  bench_report report;
  const double inside = add_breakdown(report, "step", watched, {2, 4});
  BOOST_TEST(std::abs(inside - 0.001) < 1e-9);
  BOOST_TEST_REQUIRE(report.rows.size() == 4U);
  double shares = 0;
  double us = 0;
  for (const bench_row& row : report.rows) {
    BOOST_TEST(row.name.starts_with("step: "), row.name);
    shares += row.numbers.at("share");
    us += row.time_us.median;
  }
  BOOST_TEST(std::abs(shares - 1) < 1e-9);
  BOOST_TEST(std::abs(us - 2e6 / 4) < 1e-3);
  BOOST_TEST(report.rows[0].numbers.at("calls") == 0.25);
  BOOST_TEST(report.rows[0].numbers.at("bytes") > 0);
}

BOOST_AUTO_TEST_SUITE_END()
