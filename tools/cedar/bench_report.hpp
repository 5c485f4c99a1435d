// What a bench found: rows of times with what follows from them, as JSON that can be read again,
// and the comparison of two of them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace cedar::tools {

/// Several measurements of one thing. Percentiles by nearest rank: each was measured.
struct spread {
  std::uint64_t count = 0;
  double median = 0;
  double low = 0;  ///< 10th percentile
  double high = 0;  ///< 90th

  /// Half of high - low, as a share of the median; 0 if there is none.
  double relative() const noexcept { return median == 0 ? 0 : (high - low) / 2 / median; }
};

/// All zero if there are no values.
spread spread_of(std::vector<double> values);

struct bench_row {
  std::string name;  ///< once in a report
  spread time_us;
  std::map<std::string, double> numbers;  ///< what follows from the time, and what it was spent on
  std::map<std::string, std::string> words;
};

struct bench_report {
  std::string kind;  ///< of bench: "kernels", "decode", ...
  std::map<std::string, std::string> settings;  ///< machine, date, options
  std::vector<bench_row> rows;
};

nlohmann::ordered_json to_json(const bench_report& report);
/// Errors: malformed, naming `name` and what is missing.
result<bench_report> parse_report(std::string_view text, const std::string& name);

struct compared_row {
  std::string name;
  double before_us = 0;
  double after_us = 0;
  double ratio = 0;  ///< after / before
  bool noise = false;  ///< their spreads overlap: nothing was shown
};

struct comparison {
  std::vector<compared_row> rows;  ///< in both, in the order of the first
  std::vector<std::string> only_before;
  std::vector<std::string> only_after;
  std::vector<std::string> differing;  ///< settings: "name: before, after"
};

/// Error mismatch: reports of different kinds.
result<comparison> compare_reports(const bench_report& before, const bench_report& after);

/// "processor", "processors", "instruction_set" and "date" of this machine, now.
std::map<std::string, std::string> machine_settings();

/// The kernels of this process use nothing beyond AVX2 from now on. Before the first one runs.
void keep_to_avx2();

}  // namespace cedar::tools
