// A placed part of the model as a reactor: messages in, messages out, no actor, no thread, no wire.
//
// The same units run under actors, in simulations and in tests. A unit decides what a message means
// and when its inputs are complete; whoever drives it moves messages and credit.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "runtime/base/cache_bytes.hpp"
#include "runtime/base/engram_counts.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/stage/drafting.hpp"
#include "runtime/stage/embedding_stage.hpp"
#include "runtime/stage/engram_stage.hpp"
#include "runtime/stage/expert_stage.hpp"
#include "runtime/stage/head_stage.hpp"
#include "runtime/stage/indexer_stage.hpp"
#include "runtime/stage/layer_stage.hpp"
#include "runtime/stage/vision_stage.hpp"

namespace cedar::stage {

using unit_time = std::chrono::steady_clock::time_point;

/// A stretch of work on one step.
struct unit_work {
  step_id step;
  std::uint32_t rows = 0;  ///< of the step; 0 if the stretch goes on with a step that was begun
  std::uint32_t decoder_rows = 0;  ///< of them, those that walk the decoder
  unit_time first_arrival;  ///< of any input
  unit_time begin;  ///< all inputs were there
  unit_time end;
  /// The step's inputs are used up; false: it waits for answers or for its verdict, or there are
  /// none.
  bool done = true;
  engram_counts engram{};  ///< of this stretch
};

/// What a unit wants to be done after it took a message.
struct unit_output {
  std::vector<flow::message> messages;  ///< to send, in this order
  std::vector<unit_work> work;  ///< what was computed
  /// Once the messages are on their way, the unit has more to do: go_on(), before the next take().
  bool more = false;
};

class unit {
 public:
  virtual ~unit() = default;

  /// Takes one message. Errors are the step's: malformed input, capacity, ...; the unit stays
  /// usable.
  virtual result<unit_output> take(flow::message message) = 0;

  /// Goes on after an output that said so (unit_output::more), which by default none does. Errors
  /// as take().
  virtual result<unit_output> go_on();

  /// Inputs of a step are used up with the step (unit_work::done); all else when it has been taken.
  /// By default: verdicts, requests, and the answers, of which a stage keeps those of one layer
  /// only.
  virtual bool is_input_of_step(const flow::message& message) const;

  /// A new epoch: everything of the old one is void.
  virtual void begin_epoch() = 0;

  /// What it holds for requests and kept prefixes now. By default nothing.
  virtual cache_bytes caches() const { return {}; }
};

/// Takes step tables alone: no step has rows of images.
std::unique_ptr<unit> make_embedding_unit(embedding_stage stage);
/// Waits, in steps with rows of images, for their embeddings.
std::unique_ptr<unit> make_image_embedding_unit(embedding_stage stage, std::size_t steps_max);
std::unique_ptr<unit> make_engram_unit(engram_stage stage);
/// `steps_max`: steps that may wait for inputs at once (the plan's steps in flight).
std::unique_ptr<unit> make_layer_unit(std::unique_ptr<layer_stage> stage, std::size_t steps_max);
/// Takes requests of stages alone.
std::unique_ptr<unit> make_expert_unit(std::unique_ptr<expert_stage> stage);
/// Waits with a step's queries and its verdict for the keys of the step.
std::unique_ptr<unit> make_indexer_unit(std::unique_ptr<indexer_stage> stage,
                                        std::size_t steps_max);
std::unique_ptr<unit> make_head_unit(std::unique_ptr<head_stage> stage, std::size_t steps_max);
std::unique_ptr<unit> make_vision_unit(std::unique_ptr<vision_stage> stage, std::size_t steps_max);
std::unique_ptr<unit> make_drafter_unit(std::unique_ptr<drafting> body, std::size_t steps_max);

}  // namespace cedar::stage
