#include "runtime/flow/sampling_rules.hpp"

#include <cmath>
#include <set>
#include <sstream>
#include <string>

namespace cedar::flow {

namespace {

/// NaN is never ok, because it compares false.
result<void> require(bool ok, const char* option, float value, const char* allowed) {
  if (ok && std::isfinite(value)) return {};
  std::ostringstream text;
  text << option << " is " << value << "; it must be " << allowed;
  return fail(errc::invalid_argument, text.str());
}

result<void> check_bias(const std::vector<token_bias>& biases, std::uint32_t vocabulary) {
  if (biases.size() > token_biases_max)
    return fail(errc::invalid_argument, std::to_string(biases.size()) +
                                            " tokens have a logit bias; at most " +
                                            std::to_string(token_biases_max) + " may");
  std::set<token_id> seen;
  for (const token_bias& one : biases) {
    const std::string where = "the logit bias of token " + std::to_string(one.token);
    if (one.token < 0 || static_cast<std::uint32_t>(one.token) >= vocabulary)
      return fail(errc::invalid_argument,
                  where + " is outside the vocabulary of " + std::to_string(vocabulary));
    if (!seen.insert(one.token).second)
      return fail(errc::invalid_argument, where + " is given twice; give it once");
    if (const auto finite = require(true, where.c_str(), one.bias, "a finite number"); !finite)
      return finite;
  }
  return {};
}

}  // namespace

result<void> check(const sampling_options& options, std::uint32_t vocabulary) {
  const float t = options.temperature, p = options.top_p, m = options.min_p;
  for (const result<void>& checked : {
           require(t >= 0, "temperature", t, "0 (no sampling) or more"),
           require(p > 0 && p <= 1, "top_p", p, "above 0 and at most 1"),
           require(m >= 0 && m <= 1, "min_p", m, "between 0 and 1"),
           require(options.repetition_penalty > 0, "repetition_penalty", options.repetition_penalty,
                   "above 0 (1: none)"),
           require(true, "presence_penalty", options.presence_penalty, "a finite number"),
           require(true, "frequency_penalty", options.frequency_penalty, "a finite number"),
           check_bias(options.bias, vocabulary),
       })
    if (!checked) return checked;
  return {};
}

}  // namespace cedar::flow
