// Asks a server many times and hands on what every request came to.
//
// Closed loop: a number of requests run at any time, a new one begins when one has ended. Open
// loop: requests begin when a Poisson process says, however many are running, so that a server that
// is too slow shows it. Either stops beginning requests after a number or a time, and waits for
// those that run.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/http/client/client.hpp"
#include "tools/cedar/load_answer.hpp"
#include "tools/cedar/load_statistics.hpp"

namespace cedar::tools {

struct load_shape {
  std::uint32_t concurrency = 1;  ///< of the closed loop
  std::optional<double> rate;  ///< requests a second, above 0: the open loop
  std::uint64_t requests_max = 0;  ///< at least 1
  std::optional<std::chrono::milliseconds> duration;  ///< begins nothing after it
  std::chrono::milliseconds deadline{0};  ///< of each request
  std::uint64_t seed = 0;  ///< of the arrivals
};

class load_generator {
 public:
  /// `bodies`: of POST /v1/completions, asked one after the other, again and again; at least one.
  load_generator(const http::server_url& server, std::vector<std::string> bodies,
                 const load_shape& shape)
      : client_(server), bodies_(std::move(bodies)), shape_(shape) {}

  /// `body`: which one it answers. Called within run().
  std::function<void(std::size_t body, const load_answer&)> on_answer;
  /// Called every `interval` within run(), while requests begin or run.
  void watch(std::chrono::milliseconds interval, std::function<void()> look);

  /// Returns when the last request has ended; its time. To be called once.
  std::chrono::steady_clock::duration run();
  /// Ends run() now. From any thread, once run() may have begun.
  void stop() { client_.stop(); }

 private:
  bool is_over() const;
  void begin_one();
  void begin_at_arrival();
  void look_again();

  http::client client_;
  std::vector<std::string> bodies_;
  load_shape shape_;
  std::optional<poisson_arrivals> arrivals_;
  std::chrono::milliseconds look_interval_{0};
  std::function<void()> look_;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_end_;
  std::uint64_t begun_ = 0;
  std::uint64_t running_ = 0;
};

}  // namespace cedar::tools
