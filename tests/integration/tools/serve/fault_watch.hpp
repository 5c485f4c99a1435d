// A server at work while something goes wrong, and when each place that has to name the fault did.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/integration/support/program.hpp"
#include "tests/integration/tools/serve/http_client.hpp"

namespace cedar::test {

/// From a fault to its name, everywhere. Promised are two seconds on a machine that has time for
/// it; tests print what it took.
inline constexpr std::chrono::milliseconds named_within = 10s;

/// Opens a connection to the server, from wherever the test's clients are.
using connector = std::function<std::unique_ptr<http_client>()>;

/// A value in a text of /metrics; 0 if it is not there.
double value_of(const std::string& metrics, const std::string& name);

/// A stream by the small model that goes on for long.
nlohmann::json endless(const std::string& prompt = "Once upon a time");

/// Whether `text` holds one of `names`.
bool contains_any(const std::string& text, const std::vector<std::string>& names);

/// A topology's limits by which a prompt takes many steps, so that a fault surely falls among them.
inline const std::string small_chunks = "limits: {rows_per_step: 4, requests: 4}\n";

/// A stream that decodes while a long prompt is computed, chunk by chunk in the same steps.
class work_under_way {
 public:
  /// Returns when some chunks of the prompt have been computed. The server has `small_chunks`, and
  /// does nothing else.
  explicit work_under_way(const connector& connect);

  /// Waits for the end of both. The stream must end with an error event, the prompt with 503, which
  /// also shows that none of its tokens was there yet; both with one of `names`. Returns when the
  /// stream said so.
  std::chrono::steady_clock::time_point check_named(const std::vector<std::string>& names);

 private:
  std::unique_ptr<http_client> decoding_;
  std::unique_ptr<http_client> prompt_;
};

/// Looks at /ready and /metrics all the time, until both have named a fault.
class fault_watch {
 public:
  struct sighting {
    std::string problem;  ///< the body of the first /ready that was 503; empty: none within limits
    std::chrono::steady_clock::time_point in_ready;
    std::chrono::steady_clock::time_point in_metrics;
    bool counted = false;  ///< one of the counters has risen
  };

  /// `counters`: metrics, one of which a fault raises.
  fault_watch(std::unique_ptr<http_client> client, const std::vector<std::string>& counters);

  bool over() const;
  /// Waits no longer than `named_within`.
  sighting wait();

 private:
  std::atomic<bool> given_up_{false};
  std::future<sighting> seen_;
};

/// Prints how long after `fault` each place named it.
void tell_times(const std::string& what, std::chrono::steady_clock::time_point fault,
                std::chrono::steady_clock::time_point in_stream, const fault_watch::sighting& seen,
                std::chrono::steady_clock::time_point in_log);

}  // namespace cedar::test
