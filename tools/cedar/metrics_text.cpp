#include "tools/cedar/metrics_text.hpp"

#include <algorithm>
#include <cstdlib>

namespace cedar::tools {

namespace {

/// Takes `{name="value",...}` off the beginning of `rest`; false if it has another form.
bool take_labels(std::string_view& rest, std::map<std::string, std::string>& to) {
  rest.remove_prefix(1);
  while (!rest.starts_with('}')) {
    const std::size_t equals = rest.find("=\"");
    if (equals == std::string_view::npos) return false;
    const std::string name(rest.substr(0, equals));
    rest.remove_prefix(equals + 2);
    std::string value;
    while (!rest.empty() && rest.front() != '"') {
      const bool is_escaped = rest.front() == '\\' && rest.size() > 1;
      if (is_escaped) rest.remove_prefix(1);
      value += is_escaped && rest.front() == 'n' ? '\n' : rest.front();
      rest.remove_prefix(1);
    }
    if (rest.empty()) return false;
    rest.remove_prefix(1);
    if (rest.starts_with(',')) rest.remove_prefix(1);
    to[name] = value;
  }
  rest.remove_prefix(1);
  return true;
}

bool read_sample(std::string_view line, metric_sample& to) {
  const std::size_t name_end = line.find_first_of("{ ");
  if (name_end == std::string_view::npos || name_end == 0) return false;
  to.name = line.substr(0, name_end);
  std::string_view rest = line.substr(name_end);
  if (rest.front() == '{' && !take_labels(rest, to.labels)) return false;
  const std::string value(rest);
  char* end = nullptr;
  to.value = std::strtod(value.c_str(), &end);
  // A time may follow.
  return end != value.c_str() && (*end == '\0' || *end == ' ');
}

}  // namespace

result<metrics_text> metrics_text::parse(std::string_view text) {
  metrics_text out;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    metric_sample one;
    if (!read_sample(line, one))
      return fail(errc::malformed,
                  "line " + std::to_string(number) +
                      " of the metrics is no sample: " + std::string(line.substr(0, 200)));
    out.samples_.push_back(std::move(one));
  }
  return out;
}

std::vector<metric_sample> metrics_text::of(std::string_view name) const {
  std::vector<metric_sample> out;
  for (const metric_sample& one : samples_)
    if (one.name == name) out.push_back(one);
  return out;
}

double metrics_text::sum(std::string_view name) const {
  double out = 0;
  for (const metric_sample& one : samples_)
    if (one.name == name) out += one.value;
  return out;
}

}  // namespace cedar::tools
