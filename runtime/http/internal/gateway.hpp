// What all connections of a server share.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <condition_variable>
#include <mutex>
#include <set>

#include "runtime/http/internal/download_gate.hpp"
#include "runtime/http/metrics.hpp"
#include "runtime/http/server.hpp"

namespace cedar::http {

/// Thread-safe.
struct gateway {
  gateway(session::generation_service& pipeline, const text::tokenizer& tokens,
          const server_options& chosen)
      : service(pipeline),
        vocabulary(tokens),
        options(chosen),
        limits(pipeline.limits()),
        door(chosen.admitted),
        downloads(chosen.downloads_max) {}

  /// An answer is being given, from its request to its last byte.
  void begin_answer() {
    const std::scoped_lock lock(mutex);
    ++answers;
  }
  void end_answer() {
    const std::scoped_lock lock(mutex);
    if (--answers == 0) idle.notify_all();
  }

  session::generation_service& service;
  const text::tokenizer& vocabulary;
  const server_options options;
  const session::service_limits limits;
  metrics counters;
  admission door;
  download_gate downloads;
  /// Decodes images: a large one takes seconds, in which connections are to be served.
  boost::asio::thread_pool decoding{1};
  std::atomic<bool> draining{false};

  std::mutex mutex;
  std::condition_variable idle;
  std::uint64_t answers = 0;
};

}  // namespace cedar::http
