#include "tools/cedar/bench_breakdown.hpp"

#include <fmt/format.h>

namespace cedar::tools {

namespace {

bench_row row_of(std::string name, const operation_time& time, const breakdown& whole) {
  const double us = time.seconds * 1e6 / whole.steps;
  bench_row out{std::move(name),
                {time.calls, us, us, us},
                {{"calls", static_cast<double>(time.calls) / whole.steps},
                 {"share", time.seconds / whole.seconds}},
                {}};
  if (time.bytes > 0) {
    out.numbers["bytes"] = time.bytes / whole.steps;
    out.numbers["GBps"] = time.bytes * 1e-9 / time.seconds;
  }
  return out;
}

}  // namespace

double add_breakdown(bench_report& to, const std::string& prefix, const timed_backend& timed,
                     const breakdown& whole) {
  double between = 0;
  for (const auto& [name, time] : by_time(timed.operations()))
    to.rows.push_back(row_of(prefix + ": " + name, time, whole));
  for (const auto& [name, time] : by_time(timed.between())) {
    to.rows.push_back(row_of(prefix + ": between " + name, time, whole));
    between += time.seconds;
  }
  const double inside = timed.seconds_in_operations();
  to.rows.push_back(row_of(prefix + ": before the first and after the last operation",
                           {1, whole.seconds - inside - between, 0}, whole));
  return inside / whole.seconds;
}

void print_breakdown(const bench_report& report, const std::string& prefix, double least) {
  fmt::print("{:<58}{:>10}{:>12}{:>9}{:>12}{:>9}\n", prefix, "calls", "us a step", "share",
             "MB a step", "GB/s");
  double rest_us = 0;
  double rest_share = 0;
  for (const bench_row& row : report.rows) {
    if (!row.name.starts_with(prefix + ": ")) continue;
    const double share = row.numbers.at("share");
    if (share < least) {
      rest_us += row.time_us.median;
      rest_share += share;
      continue;
    }
    const auto bytes = row.numbers.find("bytes");
    fmt::print("  {:<56}{:>10.1f}{:>12.1f}{:>9.3f}", row.name.substr(prefix.size() + 2),
               row.numbers.at("calls"), row.time_us.median, share);
    if (bytes == row.numbers.end())
      fmt::print("\n");
    else
      fmt::print("{:>12.3f}{:>9.2f}\n", bytes->second * 1e-6, row.numbers.at("GBps"));
  }
  fmt::print("  {:<66}{:>12.1f}{:>9.3f}\n", fmt::format("each below {:g} of the time", least),
             rest_us, rest_share);
}

}  // namespace cedar::tools
