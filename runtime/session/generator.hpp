// Something that runs generations: the engine in this process, or a pipeline of actors.
#pragma once

#include <functional>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/session/request.hpp"

namespace cedar::session {

/// Where results go while they are made. Called from one thread, in order; must not block for long.
struct generation_sink {
  /// `index`: of the request in the call's list.
  std::function<void(std::size_t index, const row_event&)> on_row;
  std::function<void(flow::tap)> on_tap;
};

class generator {
 public:
  virtual ~generator() = default;

  /// Runs all requests to their end; returns their numbers in the same order. Errors: those of
  /// step_scheduler::submit (nothing was run), or of the pipeline (peer_lost, timeout, ...): then
  /// requests may have delivered part of their events.
  virtual result<std::vector<usage>> generate(const std::vector<generation_request>& requests,
                                              const generation_sink& sink) = 0;
};

}  // namespace cedar::session
