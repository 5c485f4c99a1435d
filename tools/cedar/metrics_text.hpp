// Reads what a server says at /metrics: Prometheus' text format, as far as cedar writes it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace cedar::tools {

struct metric_sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

class metrics_text {
 public:
  /// Errors: malformed (a line that is no sample, with its number).
  static result<metrics_text> parse(std::string_view text);

  /// All samples of that name, in their order.
  std::vector<metric_sample> of(std::string_view name) const;
  /// The sum over all labels; 0 if there is no such sample.
  double sum(std::string_view name) const;

 private:
  std::vector<metric_sample> samples_;
};

}  // namespace cedar::tools
